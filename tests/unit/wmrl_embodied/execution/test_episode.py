"""Checks of ``wmrl_embodied.execution.episode`` and ``robot`` on real LIBERO physics and cameras."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from wmrl_embodied.assets import find_asset
from wmrl_embodied.execution.episode import EpisodeJob
from wmrl_embodied.execution.local import PoolConfig
from wmrl_embodied.execution.robot import RobotExecutor, RobotPool, RobotSetting, robot_pool
from wmrl_embodied.policies.contract import Proposals, Starts

POLICY = find_asset(Path("small_vla_quick.safetensors"))
SETTING = RobotSetting(policy=POLICY, suite="libero_10", tasks=(5,), horizon=20)
SLIGHT = (0.3, -0.2, 0.1, 0.0, 0.0, 0.1, 0.0, 0.0)

pytestmark = [pytest.mark.libero, pytest.mark.slow]


def _job(plan: tuple[float, ...] = (0.0,) * 8, **settings: bool) -> EpisodeJob:
    return EpisodeJob(
        policy=POLICY, suite="libero_10", task=5, init_state=3, plan=plan, horizon=20, **settings
    )


@pytest.fixture(scope="module")
def pool() -> Iterator[RobotPool]:
    # Episodes run in workers only: a GL context stays with the process that made it.
    with robot_pool(PoolConfig(workers=1)) as shared:
        yield shared


def test_the_outcome_is_a_function_of_start_and_plan(pool: RobotPool) -> None:
    records = pool.map([_job(), _job(SLIGHT), _job()])
    first, other, again = [record.answer for record in records]
    assert first is not None
    assert other is not None
    assert again is not None
    assert np.array_equal(first.features, again.features)
    assert np.array_equal(first.proprio, again.proprio)
    assert not np.array_equal(first.proprio[-1], other.proprio[-1])


def test_an_episode_ends_at_its_horizon_and_keeps_what_it_saw(pool: RobotPool) -> None:
    (record,) = pool.map([_job(film=True)])
    episode = record.answer
    assert episode is not None
    assert (episode.steps, episode.success) == (20, False)
    # 20 steps in chunks of 8: three chunks, of which the last is cut.
    assert episode.features.shape == (3, 64)
    assert episode.proprio.shape == (3, 8)
    assert episode.frames is not None
    assert episode.frames.shape == (4, 128, 128, 3)
    assert episode.cpu_seconds > 0.0


def test_a_start_is_observed_without_running_the_episode(pool: RobotPool) -> None:
    start, episode = pool.map([_job(only_start=True), _job()])
    assert start.answer is not None
    assert episode.answer is not None
    assert start.answer.steps == 0
    assert np.array_equal(start.answer.features[0], episode.answer.features[0])


def test_only_what_was_asked_for_is_executed(pool: RobotPool) -> None:
    executor = RobotExecutor(SETTING, pool)
    proposals = Proposals(
        starts=Starts(
            tasks=torch.tensor([0]), init_states=torch.tensor([3]), context=torch.zeros(1, 64)
        ),
        plans=torch.tensor([[(0.0,) * 8, SLIGHT]]),
        logp=torch.zeros(1, 2),
    )
    outcomes = executor.execute(proposals, torch.tensor([[False, True]]))
    assert outcomes.executed.tolist() == [[False, True]]
    assert outcomes.scores[0, 0].isnan()
    assert outcomes.scores[0, 1] == 0.0
    assert (outcomes.cost.executions, outcomes.cost.steps) == (1, 20)


def test_another_process_gets_the_same_episode(pool: RobotPool) -> None:
    (here,) = pool.map([_job(SLIGHT)])
    with robot_pool(PoolConfig(workers=1)) as elsewhere:
        (there,) = elsewhere.map([_job(SLIGHT)])
    assert here.answer is not None
    assert there.answer is not None
    assert np.array_equal(here.answer.features, there.answer.features)
