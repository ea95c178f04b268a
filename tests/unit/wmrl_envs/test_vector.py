"""Checks of ``wmrl_envs.vector``: supervision, masks and the NEXT_STEP contract."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from wmrl_envs.errors import InfrastructureError, InvalidInputError
from wmrl_envs.micro.pick import MicroPickEnv
from wmrl_envs.vector import SupervisedVectorEnv

WAIT = np.array([0.0, 0.0, -1.0], dtype=np.float32)
CLOSE = np.array([0.0, 0.0, 1.0], dtype=np.float32)


@pytest.fixture
def envs() -> Iterator[SupervisedVectorEnv]:
    made = SupervisedVectorEnv([MicroPickEnv, MicroPickEnv], step_timeout_s=1.0)
    yield made
    made.close()


def kill(envs: SupervisedVectorEnv, worker: int) -> None:
    os.kill(envs.worker_pids[worker], signal.SIGKILL)


def test_batches_like_single_environments(envs: SupervisedVectorEnv) -> None:
    observations, infos = envs.reset(seed=7)

    single = [MicroPickEnv(), MicroPickEnv()]
    states = [env.reset(seed=7 + i)[0]["state"] for i, env in enumerate(single)]
    np.testing.assert_array_equal(observations["state"], states)
    assert observations["task"] == tuple(env.language for env in single)
    assert infos["missing"].tolist() == [False, False]
    assert envs.observation_space.contains(observations)


def test_resets_in_the_step_after_an_episodes_end(envs: SupervisedVectorEnv) -> None:
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    envs.reset(seed=0)
    _, _, terminated, _, _ = envs.step(np.stack([CLOSE, WAIT]))
    assert terminated.tolist() == [True, False]

    _, rewards, terminated, _, infos = envs.step(np.stack([CLOSE, WAIT]))

    assert rewards.tolist() == [0.0, 0.0]
    assert terminated.tolist() == [False, False]
    assert infos["elapsed_steps"].tolist() == [0, 2]  # the first is new, its action was ignored


def test_a_killed_worker_is_missing_and_replaced(envs: SupervisedVectorEnv) -> None:
    envs.reset(seed=0)
    before = envs.worker_pids
    kill(envs, 0)

    _, rewards, terminated, truncated, infos = envs.step(np.stack([WAIT, WAIT]))

    assert infos["missing"].tolist() == [True, False]
    assert np.isnan(rewards[0])
    assert rewards[1] == 0.0
    assert (terminated[0], truncated[0]) == (False, True)
    assert "exit code -9" in infos["failure"][0]
    assert envs.worker_pids[0] != before[0]
    assert envs.worker_pids[1] == before[1]
    _, rewards, _, _, infos = envs.step(np.stack([WAIT, WAIT]))
    assert infos["missing"].tolist() == [False, False]
    assert infos["elapsed_steps"].tolist() == [0, 2]
    assert rewards.tolist() == [0.0, 0.0]


def test_a_hung_worker_is_missing_and_replaced(envs: SupervisedVectorEnv) -> None:
    envs.reset(seed=0)
    before = envs.worker_pids
    os.kill(before[1], signal.SIGSTOP)

    _, rewards, _, truncated, infos = envs.step(np.stack([WAIT, WAIT]))

    assert infos["missing"].tolist() == [False, True]
    assert np.isnan(rewards[1])
    assert truncated.tolist() == [False, True]
    assert infos["failure"][1] == "no answer within 1 s"
    assert envs.worker_pids[1] != before[1]


def test_a_replaced_worker_draws_reproducibly(envs: SupervisedVectorEnv) -> None:
    starts = []
    for _ in range(2):
        envs.reset(seed=3)
        kill(envs, 0)
        envs.reset(seed=3)
        kill(envs, 0)
        envs.step(np.stack([WAIT, WAIT]))
        _, _, _, _, infos = envs.step(np.stack([WAIT, WAIT]))
        starts.append(infos["init_state"][0])
        envs.close()
        envs = SupervisedVectorEnv([MicroPickEnv, MicroPickEnv], step_timeout_s=1.0)
    envs.close()
    assert starts[0] == starts[1]


def test_a_reset_survives_a_killed_worker(envs: SupervisedVectorEnv) -> None:
    envs.reset(seed=0)
    kill(envs, 1)
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert infos["missing"].tolist() == [False, False]


def test_gives_up_on_a_worker_that_never_works() -> None:
    envs = SupervisedVectorEnv([MicroPickEnv], reset_timeout_s=1e-6, max_failures=2)
    with pytest.raises(InfrastructureError, match=r"worker 0 failed 2 times in a row: no answer"):
        envs.reset()
    envs.close()


def test_raises_what_an_environment_says_and_goes_on(envs: SupervisedVectorEnv) -> None:
    envs.reset(seed=0)
    bad = np.stack([WAIT * np.nan, WAIT])
    with pytest.raises(InvalidInputError, match="action must be 3 finite numbers"):
        envs.step(bad)
    _, _, _, _, infos = envs.step(np.stack([WAIT, WAIT]))
    assert infos["elapsed_steps"].tolist() == [1, 2]


def test_leaves_no_process_behind(envs: SupervisedVectorEnv) -> None:
    envs.reset(seed=0)
    pids = envs.worker_pids
    envs.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("limit", ["step_timeout_s", "reset_timeout_s", "max_failures"])
def test_refuses_limits_that_are_not_positive(limit: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{limit} must be positive, got 0"):
        SupervisedVectorEnv([MicroPickEnv], **{limit: 0})


def test_refuses_the_wrong_number_of_seeds(envs: SupervisedVectorEnv) -> None:
    with pytest.raises(InvalidInputError, match="seed must be one number or 2 of them, got 3"):
        envs.reset(seed=[1, 2, 3])
