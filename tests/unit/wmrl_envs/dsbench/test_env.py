"""Checks of ``wmrl_envs.dsbench.env``."""

import warnings
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from wmrl_envs.autoresearch.sandbox import Execution, Program, Sandbox
from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.dsbench.env import DSBenchConfig, DSBenchEnv
from wmrl_envs.dsbench.layout import ModellingTask

FILES = {
    "data/task/wells.txt": "How deep is each well?",
    "data/data_resplit/wells/train.csv": "id,depth\n0,5\n",
    "data/data_resplit/wells/test.csv": "id\n1\n",
    "data/data_resplit/wells/sample_submission.csv": "id,depth\n1,0\n",
    "data/answers/wells/test_answer.csv": "id,depth\n1,10\n",
    "evaluation/wells_eval.py": "raise SystemExit('not called here')\n",
    "save_performance/baseline/wells/result.txt": "0.0",
    "save_performance/GT/wells/result.txt": "10.0",
}


class DoubleSandbox(Sandbox):
    """Hands back the program's text as its submission."""

    def __init__(self) -> None:
        """Nothing to start."""

    def run(self, program: Program) -> Execution:
        """Answer without running."""
        if program.code == "fail":
            return Execution(status="error", error_type="ValueError", message="no")
        return Execution(status="ok", collected=program.code.encode())


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DSBenchEnv:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def score(_: ModellingTask, submission: bytes) -> float | Invalid:
        return float(submission) if submission.strip().isdigit() else Invalid(reason="no number")

    monkeypatch.setattr(ModellingTask, "score", score)
    return DSBenchEnv("wells", tmp_path, sandbox=DoubleSandbox(), config=DSBenchConfig(turns=4))


def test_passes_gymnasiums_checker(env: DSBenchEnv) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)


def test_rewards_add_up_to_the_best_gap_closed(env: DSBenchEnv) -> None:
    observation, _ = env.reset(seed=0)
    assert "How deep" in observation
    # Gaps 3/10, 12/10, none, 5/10: each turn pays what it adds to the best.
    outcomes = [env.step(code) for code in ("3", "12", "fail", "5")]
    assert [outcome[1] for outcome in outcomes] == pytest.approx([0.3, 0.9, 0.0, 0.0])
    assert [outcome[3] for outcome in outcomes] == [False, False, False, True]
    assert outcomes[-1][4]["best_gap"] == pytest.approx(1.2)


def test_a_failure_is_told(env: DSBenchEnv) -> None:
    env.reset(seed=0)
    observation, reward, _, _, info = env.step("fail")
    assert "No score. ValueError: no" in observation
    assert (reward, info["is_valid"], info["problem"]) == (0.0, False, "ValueError: no")
