"""Checks of ``wmrl_envs.libero.collect``."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.collect import CollectConfig, collect
from wmrl_envs.libero.dataset import read_demonstrations
from wmrl_envs.libero.expert import EXPERTS
from wmrl_envs.libero.parts import Parts

BOOK = "STUDY_SCENE1_pick_up_the_book_and_place_it_in_the_back_compartment_of_the_caddy"


def test_all_ten_tasks_are_collected_by_default() -> None:
    assert CollectConfig().task_names == tuple(EXPERTS)


def test_tasks_are_named_by_number_or_name() -> None:
    assert CollectConfig(tasks=("5", BOOK)).task_names == (BOOK, BOOK)


@pytest.mark.parametrize("field", ["repeats", "image_size", "images_every", "workers"])
def test_a_count_below_one_is_refused(field: str) -> None:
    changed: dict[str, Any] = {field: 0}
    with pytest.raises(InvalidInputError, match=f"{field} must be at least 1, got 0"):
        CollectConfig(**changed)


def test_an_initial_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"init_states must be .* got 50; .* 0 to 49"):
        CollectConfig(init_states=(0, 50))


def test_settings_are_not_mixed_in_one_folder(tmp_path: Path) -> None:
    collect(CollectConfig(output=tmp_path, tasks=(), jitter=1.0), show_progress=False)

    with pytest.raises(InvalidInputError, match=r"jitter must be 1.0.* got 0.5; choose another"):
        collect(CollectConfig(output=tmp_path, tasks=(), jitter=0.5), show_progress=False)


@pytest.mark.slow
@pytest.mark.libero
def test_a_second_collection_runs_only_what_is_missing(tmp_path: Path) -> None:
    def settings(init_states: tuple[int, ...]) -> CollectConfig:
        return CollectConfig(
            output=tmp_path, tasks=("5",), init_states=init_states, images_every=8,
            image_size=32, jitter=0.0, workers=1,
        )  # fmt: skip

    collect(settings((0,)), show_progress=False)
    path = Parts(tmp_path).demonstration_file(BOOK)
    (first,) = read_demonstrations(path)
    (report,) = collect(settings((0, 1)), show_progress=False)

    again, second = read_demonstrations(path)
    assert (report.successes, report.failures, report.missing) == (2, 0, 0)
    assert again.origin == first.origin  # its CPU time too: it was not run again
    np.testing.assert_array_equal(again.images, first.images)
    assert second.origin["init_state_index"] == 1
    assert second.image_steps[:3].tolist() == [0, 8, 16]
    assert np.abs(second.state[:, :3] - second.robot_states[:, 2:5]).max() < 1e-6
    assert np.abs(second.joint_states - second.sim_states[:, 1:8]).max() < 0.02
    np.testing.assert_array_equal(second.actions, second.intended)
