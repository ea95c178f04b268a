"""Checks of ``wmrl_envs.libero.expert.registry``."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.expert import EXPERTS, Expert, Scene, expert_name, make_expert
from wmrl_envs.libero.expert.motion import Motion

LIBERO = pytest.mark.libero


class UnseenScene(Scene):
    """Stands for a scene that must not be looked at."""

    def __init__(self) -> None:
        pass


def steady(speed: float) -> Motion:
    while True:
        yield np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def noise_of(speed: float, *, steps: int = 4000) -> np.ndarray:
    expert = Expert(steady(speed), rng=np.random.default_rng(0), action_std=0.1)
    return np.array([action - expert.intended for action in itertools.islice(expert, steps)])


def test_an_expert_is_named_by_number_or_name() -> None:
    names = list(EXPERTS)

    assert [expert_name(number) for number in range(10)] == names
    assert expert_name(names[3]) == names[3]


@pytest.mark.parametrize("task", [-1, 10, "KITCHEN_SCENE1_open_the_door"])
def test_an_unknown_task_is_answered_with_those_there_are(task: int | str) -> None:
    with pytest.raises(InvalidInputError, match=r"must be a libero_10 task .* 9: KITCHEN_SCENE6"):
        expert_name(task)


def test_without_noise_the_intended_action_is_executed() -> None:
    expert = Expert(steady(0.5), rng=np.random.default_rng(0), action_std=0.0)

    np.testing.assert_array_equal(next(expert), expert.intended)


def test_noise_has_its_standard_deviation_at_full_speed_only() -> None:
    full, still = noise_of(0.8)[:, 1].std(), noise_of(0.0)[:, 1].std()

    assert full == pytest.approx(0.1, rel=0.1)  # speed 0.8 + share 0.2 = 1
    assert still == pytest.approx(0.02, rel=0.1)  # 0.2 of it


def test_noise_is_smooth_and_spares_the_gripper() -> None:
    noise = noise_of(0.5)

    correlation = np.corrcoef(noise[:-1, 1], noise[1:, 1])[0, 1]
    assert correlation == pytest.approx(0.8, abs=0.05)
    assert np.abs(noise[:, 6]).max() == 0.0


def test_actions_stay_in_range() -> None:
    expert = Expert(steady(1.0), rng=np.random.default_rng(0), action_std=1.0)

    assert max(np.abs(action).max() for action in itertools.islice(expert, 100)) == 1.0


@LIBERO
def test_there_is_one_expert_for_each_task_in_the_order_of_the_suite() -> None:
    from wmrl_envs.libero.suite import tasks_of

    assert list(EXPERTS) == [task.name for task in tasks_of("libero_10")]


@LIBERO
@pytest.mark.slow
@pytest.mark.parametrize("task", range(10))
def test_every_task_is_solved_from_its_first_official_start(task: int) -> None:
    from wmrl_envs.libero.env import LiberoEnv

    env = LiberoEnv(task=task, cameras=())

    def run() -> Iterator[bool]:
        for _ in range(2):
            env.reset(options={"init_state": 0})
            scene = Scene(env.model, env.data)
            expert = make_expert(task, scene, rng=np.random.default_rng(0))
            yield any(env.step(action)[2] for action in expert)

    first, second = run()
    env.close()
    assert first
    assert second  # the second start finds the scene as the first did


@pytest.mark.parametrize("jitter", [-1.0, float("nan")])
def test_jitter_that_is_no_amount_is_refused(jitter: float) -> None:
    with pytest.raises(InvalidInputError, match=f"jitter must be 0 or more, got {jitter}"):
        make_expert(5, UnseenScene(), rng=np.random.default_rng(0), jitter=jitter)
