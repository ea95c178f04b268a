"""Checks of ``wmrl_envs.mledojo.env``."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env

from wmrl_envs.autoresearch.sandbox import Execution, Program, Sandbox
from wmrl_envs.mledojo.env import MLEDojoConfig, MLEDojoEnv

pytest.importorskip("pandas", reason="the autoresearch extra is not installed")

METRIC = """
from mledojo.metrics.base import CompetitionMetrics


class SumMetrics(CompetitionMetrics):
    def __init__(self, value="y", higher_is_better=True):
        super().__init__(higher_is_better)

    def evaluate(self, y_true, y_pred):
        return y_pred["y"].sum()

    def validate_submission(self, submission, ground_truth):
        return "fine"
"""


class DoubleSandbox(Sandbox):
    """Writes the program's own text as its submission."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def run(self, program: Program) -> Execution:
        """Answer without running."""
        self.programs.append(program)
        if program.code == "fail":
            return Execution(status="error", error_type="ValueError", stderr="ValueError: no")
        return Execution(status="ok", stdout="done", collected=f"id,y\n1,{program.code}\n".encode())


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., MLEDojoEnv]:
    files = {
        "data/public/description.txt": "Sum it.",
        "data/public/sample_submission.csv": "id,y\n1,0\n",
        "data/public/images/a.txt": "a",
        "data/private/test_answer.csv": "id,y\n1,1\n",
        "data/private/private_leaderboard.csv": "rank,score\n1,4\n2,3\n3,2\n4,1\n",
        "utils/metric.py": METRIC,
    }
    for name, text in files.items():
        path = tmp_path / "sums" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def build(**settings: Any) -> MLEDojoEnv:
        config = MLEDojoConfig(**settings)
        env = MLEDojoEnv("sums", tmp_path, sandbox=DoubleSandbox(), config=config)
        env.reset(seed=0)
        return env

    return build


def act(name: str, **arguments: str) -> str:
    return json.dumps({"action": name, **arguments})


def test_passes_gymnasiums_checker(make: Callable[..., MLEDojoEnv]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(), skip_render_check=True)


def test_rewards_add_up_to_the_best_human_rank(make: Callable[..., MLEDojoEnv]) -> None:
    env = make()
    # Places 4, 2, 3 and none of 4: HumanRank 1/4, 3/4, 1/2, 0.
    rewards = [env.step(act("execute_code", code=code))[1] for code in ("1", "3", "2", "0")]
    assert rewards == [0.25, 0.5, 0.0, 0.0]


def test_the_top_of_the_board_ends_the_episode(make: Callable[..., MLEDojoEnv]) -> None:
    _, reward, terminated, truncated, info = make().step(act("execute_code", code="4"))
    assert (reward, terminated, truncated, info["human_rank"]) == (1.0, True, False, 1.0)


def test_validation_runs_code_but_never_grades_it(make: Callable[..., MLEDojoEnv]) -> None:
    observation, reward, _, _, info = make().step(act("validate_code", code="4"))
    assert "Code runs" in observation
    assert (reward, info["human_rank"], info["status"]) == (0.0, 0.0, "ok")


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("overview", "Sum it."),
        ("sample_submission", "id,y\n1,0"),
        ("data_structure", "input/images/a.txt"),
        ("data_path", "input/"),
        ("output_path", "submission.csv"),
        ("answers", "info_type must be one of"),
    ],
)
def test_information_is_of_the_public_part_only(
    kind: str, shown: str, make: Callable[..., MLEDojoEnv]
) -> None:
    observation = make().step(act("request_info", info_type=kind))[0]
    assert shown in observation
    assert "test_answer" not in observation


def test_history_lists_what_was_done(make: Callable[..., MLEDojoEnv]) -> None:
    env = make()
    assert env.step(act("get_history"))[0] == "No action so far."
    env.step(act("execute_code", code="2"))
    assert "Score 2, HumanRank 0.5000" in env.step(act("get_history"))[0]


def test_the_reset_action_forgets_but_pays_nothing_twice(make: Callable[..., MLEDojoEnv]) -> None:
    env = make()
    env.step(act("execute_code", code="3"))
    env.step(act("reset"))
    assert env.step(act("get_history"))[0] == "No action so far."
    _, reward, _, _, info = env.step(act("execute_code", code="3"))
    assert (reward, info["best_human_rank"]) == (0.0, 0.75)


def test_bare_code_is_executed(make: Callable[..., MLEDojoEnv]) -> None:
    info = make().step("```python\n3```")[4]
    assert (info["action"], info["human_rank"]) == ("execute_code", 0.75)


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (act("fly"), "action must be one of request_info"),
        (act("execute_code"), "code must be a Python program"),
        (act("execute_code", code="fail"), "No score. error"),
    ],
)
def test_a_useless_action_is_told_and_costs_its_turn(
    action: str, shown: str, make: Callable[..., MLEDojoEnv]
) -> None:
    observation, reward, _, truncated, _ = make(turns=1).step(action)
    assert shown in observation
    assert (reward, truncated) == (0.0, True)
