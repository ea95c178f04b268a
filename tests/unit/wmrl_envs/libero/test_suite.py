"""Checks of ``wmrl_envs.libero.suite``."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.suite import (
    HORIZONS,
    LiberoTask,
    find_task,
    init_states_of,
    load_init_states,
    tasks_of,
)

pytestmark = pytest.mark.libero


def task_with_states(path: Path) -> LiberoTask:
    return LiberoTask(
        suite="own", number=0, name="own", language="", bddl_file=path, init_states_file=path
    )


def write_torch_zip(path: Path, content: object) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content))


def test_suites_have_their_official_sizes() -> None:
    sizes = {suite: len(tasks_of(suite)) for suite in HORIZONS}
    assert sizes == {
        "libero_10": 10,
        "libero_spatial": 10,
        "libero_object": 10,
        "libero_goal": 10,
        "libero_90": 90,
    }


def test_a_task_is_found_by_number_and_by_name() -> None:
    by_number = find_task("libero_10", 8)
    assert by_number.language == "put both moka pots on the stove"
    assert by_number.bddl_file.is_file()
    assert find_task("libero_10", by_number.name) == by_number


def test_suggests_the_nearest_name() -> None:
    with pytest.raises(InvalidInputError, match="did you mean 'libero_10'"):
        find_task("libero_1O", 0)
    name = find_task("libero_10", 8).name
    with pytest.raises(InvalidInputError, match=f"did you mean '{name}'"):
        find_task("libero_10", name.lower())


@pytest.mark.parametrize("task", [10, -1])
def test_refuses_a_number_out_of_range(task: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"task must be in 0\.\.9 .*got {task}"):
        find_task("libero_10", task)


def test_splits_are_disjoint_and_complete() -> None:
    train, held_out = (init_states_of("libero_10", 0, split) for split in ("train", "held_out"))
    assert (len(train), len(held_out)) == (30, 20)
    assert sorted(train + held_out) == list(init_states_of("libero_10", 0))


def test_refuses_an_unknown_split() -> None:
    with pytest.raises(InvalidInputError, match="split must be one of all, train, held_out"):
        init_states_of("libero_10", 0, "test")


def test_official_states_have_time_positions_and_velocities() -> None:
    states = load_init_states(find_task("libero_10", 0))
    assert states.shape == (50, 1 + 65 + 57)  # time, nq, nv of that scene
    assert not states.flags.writeable


def test_reads_an_array_pickled_by_torch(tmp_path: Path) -> None:
    states = np.arange(6.0).reshape(2, 3)
    write_torch_zip(tmp_path / "own.pruned_init", states)
    read = load_init_states(task_with_states(tmp_path / "own.pruned_init"))
    np.testing.assert_array_equal(read, states)


def test_runs_no_code_from_a_file(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "evil.pruned_init", io.BytesIO)
    with pytest.raises(InvalidInputError, match=r"it asks for _io\.BytesIO"):
        load_init_states(task_with_states(tmp_path / "evil.pruned_init"))


def test_says_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"init states must be .*gone\.pruned_init"):
        load_init_states(task_with_states(tmp_path / "gone.pruned_init"))
