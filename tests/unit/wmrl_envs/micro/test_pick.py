"""Checks of ``wmrl_envs.micro.pick``."""

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.micro.pick import COLOURS, HORIZON, MAX_STEP_M, MicroPickEnv


def reach(env: MicroPickEnv, colour: str) -> tuple[float, bool, bool]:
    observation, _ = env.reset(options={"init_state": 5})
    blocks = observation["state"][2:].reshape(-1, 2)
    target = blocks[COLOURS.index(colour)]
    for _ in range(HORIZON):
        offset = target - observation["state"][:2]
        is_there = np.linalg.norm(offset) < 0.01
        move = np.clip(offset / MAX_STEP_M, -1, 1)
        action = np.array([*move, 1.0 if is_there else -1.0])
        observation, reward, terminated, _, info = env.step(action)
        if terminated:
            return float(reward), terminated, info["is_success"]
    return 0.0, False, False


def test_grasping_the_named_block_succeeds_and_another_does_not() -> None:
    env = MicroPickEnv()
    env.reset(options={"init_state": 5})
    named = env.language.split()[3]
    other = next(colour for colour in COLOURS if colour != named)
    assert reach(env, named) == (1.0, True, True)
    assert reach(env, other) == (0.0, True, False)


def test_a_step_moves_a_tenth_of_a_metre() -> None:
    env = MicroPickEnv()
    env.reset(seed=0)
    observation, *_ = env.step([1.0, -0.5, -1.0])
    np.testing.assert_allclose(observation["state"][:2], [0.1, -0.05], rtol=1e-6)


def test_is_truncated_at_the_horizon() -> None:
    env = MicroPickEnv()
    env.reset(seed=0)
    ends = [env.step([0.0, 0.0, -1.0])[2:4] for _ in range(HORIZON)]
    assert ends[-2] == (False, False)
    assert ends[-1] == (False, True)


def test_equal_seeds_give_equal_episodes() -> None:
    first, second = (MicroPickEnv().reset(seed=11)[0] for _ in range(2))
    np.testing.assert_array_equal(first["state"], second["state"])
    assert first["task"] == second["task"]


def test_needs_a_reset_first() -> None:
    with pytest.raises(ResetNeeded):
        MicroPickEnv().step([0.0, 0.0, 0.0])


@pytest.mark.parametrize("action", [[0.0, 0.0], [np.nan, 0.0, 0.0]])
def test_refuses_actions_that_are_not_three_finite_numbers(action: list[float]) -> None:
    env = MicroPickEnv()
    env.reset(seed=0)
    with pytest.raises(InvalidInputError, match="action must be 3 finite numbers"):
        env.step(action)


def test_refuses_an_unknown_initial_state() -> None:
    with pytest.raises(InvalidInputError, match=r"init_state must be in 0\.\.63, got 64"):
        MicroPickEnv().reset(options={"init_state": 64})
