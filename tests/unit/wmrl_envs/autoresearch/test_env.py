"""Checks of ``wmrl_envs.autoresearch.env``."""

import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from wmrl_envs.autoresearch.env import AutoResearchConfig, AutoResearchEnv
from wmrl_envs.autoresearch.sandbox import Execution, Program, Sandbox, SandboxConfig
from wmrl_envs.errors import DependencyNotInstalledError, InfrastructureError, InvalidInputError

MEAN = """
import pandas as pd
sample = pd.read_csv("input/sample_submission.csv")
sample["mass_g"] = pd.read_csv("input/train.csv")["mass_g"].mean()
sample.to_csv("submission.csv", index=False)
print("mean written")
"""


class DoubleSandbox(Sandbox):
    """Answers every program from a list instead of running it."""

    def __init__(self, *answers: Execution | InfrastructureError) -> None:
        self.answers, self.programs = list(answers), list[Program]()

    def run(self, program: Program) -> Execution:
        """Answer without running."""
        self.programs.append(program)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, InfrastructureError):
            raise answer
        return answer


def submission(mass_g: float) -> Execution:
    env = AutoResearchEnv("penguins", sandbox=DoubleSandbox())
    rows = "".join(f"{name},{mass_g}\n" for name in env.task.answers)
    return Execution(status="ok", collected=f"id,mass_g\n{rows}".encode())


FAILED = Execution(status="error", error_type="KeyError", message="'mass'", line=3)


def make(*answers: Execution | InfrastructureError, **settings: Any) -> AutoResearchEnv:
    env = AutoResearchEnv("penguins", sandbox=DoubleSandbox(*answers), **settings)
    env.reset(seed=0)
    return env


def test_passes_gymnasiums_checker() -> None:
    env = AutoResearchEnv("penguins", sandbox=DoubleSandbox(submission(4200.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)


def test_the_first_observation_shows_task_data_and_form() -> None:
    env = AutoResearchEnv("penguins", sandbox=DoubleSandbox(FAILED))
    observation, info = env.reset(seed=0)
    assert "Weigh a penguin" in observation
    assert "input/train.csv:\nid,species" in observation
    assert "submission.csv" in observation
    assert info == {"task": "penguins", "turn": 0}


def test_the_return_is_the_best_reward_of_the_episode() -> None:
    good, bad = submission(4200.0), submission(9000.0)
    env = make(bad, good, FAILED, bad)
    outcomes = [env.step("x = 1") for _ in range(4)]
    rewards = [outcome[1] for outcome in outcomes]
    assert rewards[0] == 0.0
    assert rewards[1] > 0.0
    assert rewards[2:] == [0.0, 0.0]
    assert sum(rewards) == outcomes[-1][4]["best_position"]
    assert [outcome[3] for outcome in outcomes] == [False, False, False, True]


def test_every_turn_may_pay_for_itself() -> None:
    env = make(submission(4200.0), per_turn=True)
    first, second = env.step("x = 1")[1], env.step("x = 1")[1]
    assert first == second > 0.0


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        (Execution(status="error", error_type="SyntaxError", line=1), 0.0),
        (FAILED, 0.1),
        (Execution(status="timeout", error_type="WallClockLimit"), 0.1),
        (Execution(status="ok"), 0.2),
        (Execution(status="ok", collected=b"id,mass_g\n1,nan\n"), 0.2),
        (submission(99999.0), 0.5),  # valid, below the whole leaderboard
    ],
)
def test_the_ladder_pays_for_what_nearly_worked(answer: Execution, reward: float) -> None:
    assert make(answer, reward="ladder").step("x = 1")[1] == reward


def test_a_failure_is_told_with_its_line() -> None:
    observation, _, _, _, info = make(FAILED).step("x = 1")
    assert "KeyError: 'mass' at line 3" in observation
    assert (info["is_valid"], info["status"]) == (False, "error")


def test_long_output_is_cut_in_the_middle() -> None:
    shown = Execution(status="ok", stdout="a" * 9000 + "end")
    observation = make(shown, longest_observation=500).step("x = 1")[0]
    assert len(observation) == 500
    assert observation.endswith("end")


def test_a_sandbox_that_fails_costs_no_turn_and_no_reward() -> None:
    env = make(InfrastructureError("the worker died"), submission(4200.0))
    with pytest.raises(InfrastructureError):
        env.step("x = 1")
    assert env.step("x = 1")[4]["turn"] == 1


def test_an_impossible_expression_is_never_run() -> None:
    env = make(FAILED, action="scaffold")
    _, reward, _, _, info = env.step("SVC()")
    assert (reward, info["status"]) == (0.0, "refused")
    assert "must be a regressor" in info["problem"]


def test_a_step_after_the_end_is_an_error() -> None:
    env = make(FAILED, turns=1)
    env.step("x = 1")
    with pytest.raises(InvalidInputError, match="call reset"):
        env.step("x = 1")


def test_equal_seeds_give_programs_equal_seeds() -> None:
    sandboxes = [DoubleSandbox(FAILED), DoubleSandbox(FAILED), DoubleSandbox(FAILED)]
    for sandbox, seed in zip(sandboxes, (5, 5, 6), strict=True):
        env = AutoResearchEnv("penguins", sandbox=sandbox)
        env.reset(seed=seed)
        env.step("x = 1")
    first, second, other = (sandbox.programs[0].seed for sandbox in sandboxes)
    assert first == second != other


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="action must be one of"):
        AutoResearchConfig(action="poem")  # ty: ignore[invalid-argument-type]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(SandboxConfig())
    except DependencyNotInstalledError as error:
        pytest.skip(str(error))
    with made:
        yield made


def test_a_program_is_run_for_real(sandbox: Sandbox) -> None:
    env = AutoResearchEnv("penguins", sandbox=sandbox)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(f"Here it is:\n```python\n{MEAN}```\n")
    assert info["is_valid"], observation
    assert "mean written" in observation
    assert 0.0 < reward < 0.3  # the mean beats only what ignores or misuses the features


def test_an_expression_is_run_for_real(sandbox: Sandbox) -> None:
    env = AutoResearchEnv("penguins", sandbox=sandbox, action="scaffold")
    env.reset(seed=0)
    info = env.step("Ridge(alpha=1.0)")[4]
    # The board holds this very pipeline: the same score on the same rows.
    assert info["score"] == pytest.approx(310.904, abs=0.01)


def test_gymnasium_makes_it_by_name_with_settings() -> None:
    import wmrl_envs  # noqa: F401  (registers the names)

    sandbox = DoubleSandbox(FAILED)
    env = gym.make("WMRL-AutoResearch", task="penguins", turns=2, sandbox=sandbox)
    env.reset(seed=0)
    assert env.step("x = 1")[3] is False
    assert env.step("x = 1")[3] is True
