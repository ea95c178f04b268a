"""Checks of ``wmrl_envs.libero.parts``."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wmrl_envs.libero.dataset import Demonstration, Origin, TaskInfo, read_origins
from wmrl_envs.libero.parts import Episode, Parts

TASK = "KITCHEN_SCENE1_do_it"
INFO = TaskInfo(
    env_name="a", env_args="{}", problem_info="{}", bddl_file_name="b", bddl_file_content="c"
)
EPISODES = [Episode(task=TASK, init_state=index, repeat=0) for index in range(3)]


def origin_of(episode: Episode, *, steps: int, is_success: bool) -> Origin:
    return {"episode": episode.stem, "steps": steps, "is_success": is_success, "cpu_s": 2.0}


def demonstration_of(episode: Episode, *, steps: int = 4) -> Demonstration:
    return Demonstration(
        language="do it",
        actions=np.zeros((steps, 7)),
        intended=np.zeros((steps, 7)),
        state=np.zeros((steps, 8), np.float32),
        images=np.zeros((steps, 2, 2, 2, 3), np.uint8),
        image_steps=np.arange(steps),
        sim_states=np.zeros((steps, 10)),
        joint_states=np.zeros((steps, 7)),
        robot_states=np.zeros((steps, 9)),
        is_success=True,
        model_file="<mujoco/>",
        origin=origin_of(episode, steps=steps, is_success=True),
    )


def test_only_episodes_without_an_outcome_are_missing(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.add(EPISODES[0], INFO, demonstration_of(EPISODES[0]))
    parts.note_failure(EPISODES[1], origin_of(EPISODES[1], steps=9, is_success=False))

    assert parts.missing(EPISODES) == [EPISODES[2]]


def test_a_merged_episode_is_still_finished(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.add(EPISODES[0], INFO, demonstration_of(EPISODES[0]))

    parts.merge(TASK)

    assert Parts(tmp_path).missing(EPISODES) == EPISODES[1:]
    assert not list((tmp_path / "parts" / TASK).iterdir())


def test_a_second_merge_appends(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    for episode in EPISODES[:2]:
        parts.add(episode, INFO, demonstration_of(episode))
        parts.merge(TASK)

    origins = read_origins(parts.demonstration_file(TASK))

    assert [origin["episode"] for origin in origins] == [episode.stem for episode in EPISODES[:2]]


def test_a_merge_stopped_before_the_parts_were_removed_adds_nothing_twice(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.add(EPISODES[0], INFO, demonstration_of(EPISODES[0]))
    parts.merge(TASK)
    parts.add(EPISODES[0], INFO, demonstration_of(EPISODES[0]))  # as if it had not been removed

    parts.merge(TASK)

    assert len(read_origins(parts.demonstration_file(TASK))) == 1


def test_the_report_counts_failures_and_missing_apart(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.add(EPISODES[0], INFO, demonstration_of(EPISODES[0], steps=4))
    parts.note_failure(EPISODES[1], origin_of(EPISODES[1], steps=520, is_success=False))
    parts.merge(TASK)

    report = parts.report(TASK, EPISODES)

    assert (report.successes, report.failures, report.missing) == (1, 1, 1)
    assert report.mean_steps == 4.0  # the failure's 520 steps do not count
    assert report.mean_cpu_s == 2.0


def test_a_report_of_nothing_has_no_mean(tmp_path: Path) -> None:
    report = Parts(tmp_path).report(TASK, EPISODES)

    assert report.missing == 3
    assert math.isnan(report.mean_steps)


@pytest.mark.parametrize("field", ["init_state", "repeat"])
def test_episodes_have_names_of_their_own(field: str) -> None:
    other = replace(EPISODES[0], **{field: 7})

    assert other.stem != EPISODES[0].stem
