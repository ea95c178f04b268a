"""Checks of ``wmrl_envs.micro.quiz``."""

import re

import pytest
from gymnasium.error import ResetNeeded

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.micro.quiz import MicroQuizEnv


def ask(env: MicroQuizEnv) -> int:
    question, _ = env.reset(seed=0)
    first, second = map(int, re.findall(r"\d+", question))
    return first + second


def test_the_right_answer_ends_with_full_score() -> None:
    env = MicroQuizEnv()
    total = ask(env)
    feedback, reward, terminated, truncated, info = env.step(f"It is {total}.")
    assert (feedback, reward, terminated, truncated) == ("Right.", 1.0, True, False)
    assert info["is_success"]


def test_a_near_answer_scores_by_its_distance_at_the_last_turn() -> None:
    env = MicroQuizEnv()
    total = ask(env)
    assert env.step(str(total + 9))[:3] == ("Too high.", 0.0, False)
    assert env.step(str(total - 9))[:3] == ("Too low.", 0.0, False)
    _, reward, terminated, _, info = env.step(str(total + 1))
    assert reward == 0.75  # 0.5 + 0.5 / (1 + 1)
    assert terminated
    assert not info["is_success"]


def test_an_answer_without_a_number_scores_zero() -> None:
    env = MicroQuizEnv()
    ask(env)
    feedback, _, _, _, info = env.step("a lot")
    assert feedback.startswith("No number found")
    assert info["score"] == 0.0


def test_needs_a_reset_first_and_after_the_end() -> None:
    env = MicroQuizEnv()
    with pytest.raises(ResetNeeded):
        env.step("1")
    env.step(str(ask(env)))
    with pytest.raises(ResetNeeded):
        env.step("1")


def test_refuses_what_is_not_text() -> None:
    env = MicroQuizEnv()
    ask(env)
    with pytest.raises(InvalidInputError, match="action must be text, got int"):
        env.step(3)  # ty: ignore[invalid-argument-type]
