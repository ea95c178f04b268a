"""Checks of ``wmrl_embodied.training.step`` on a domain with a known rule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.loop import start
from wmrl_embodied.training.step import improve, warm_up

CONFIG = TrainConfig(groups=4, group_size=8, steps=5, warmup=32)


@pytest.fixture
def warm_state(double_domain: Callable[..., Any], tmp_path: Any) -> Any:
    state: Any = start(CONFIG, double_domain(), tmp_path)
    warm_up(state, CONFIG)
    return state


def test_warm_up_executes_what_it_was_told_to_and_fits_the_world_model(warm_state: Any) -> None:
    assert warm_state.is_warm
    assert warm_state.ledger.executions == 32
    assert len(warm_state.domain.world_model) == 32


def test_a_step_executes_a_part_and_counts_all_of_it(warm_state: Any) -> None:
    record = improve(warm_state, CONFIG)
    executed = int(record.outcomes.executed.sum())
    assert 0 < executed < 32
    assert warm_state.ledger.executions == 32 + executed
    assert warm_state.ledger.proposed == 32 + 32
    assert warm_state.step == 1


def test_a_step_moves_the_policy(warm_state: Any) -> None:
    before = warm_state.domain.policy.mean.detach().clone()
    improve(warm_state, CONFIG)
    assert not torch.equal(before, warm_state.domain.policy.mean)


def test_what_is_executed_does_not_depend_on_outcomes(
    double_domain: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two worlds with the same past and opposite outcomes now: the same rollouts are executed.
    states = [start(CONFIG, double_domain(), tmp_path) for _ in range(2)]
    for state in states:
        warm_up(state, CONFIG)
    execute = states[1].domain.executor.execute

    def opposite(proposals: Any, asked: Any) -> Any:
        outcomes = execute(proposals, asked)
        return replace(outcomes, scores=1.0 - outcomes.scores)

    monkeypatch.setattr(states[1].domain.executor, "execute", opposite)
    records = [improve(state, CONFIG) for state in states]
    assert torch.equal(records[0].outcomes.executed, records[1].outcomes.executed)


def test_missing_executions_are_counted_and_never_scored(
    double_domain: Callable[..., Any], tmp_path: Any
) -> None:
    state: Any = start(CONFIG, double_domain(lose_every=3), tmp_path)
    warm_up(state, CONFIG)
    record = improve(state, CONFIG)
    assert state.ledger.missing > 10
    assert state.ledger.asked == state.ledger.executions + state.ledger.missing
    assert len(state.domain.world_model) == state.ledger.executions
    assert record.outcomes.scores[record.outcomes.executed].isfinite().all()


@pytest.mark.parametrize("name", ["real", "anchors_only", "paper", "fast", "balanced", "unbiased"])
def test_every_estimator_runs_the_same_step(
    name: str, double_domain: Callable[..., Any], tmp_path: Any
) -> None:
    config = replace(CONFIG, estimator=name)
    state: Any = start(config, double_domain(), tmp_path)
    if state.estimator.config.use_world_model:
        warm_up(state, config)
    for _ in range(2):
        record = improve(state, config)
    assert torch.isfinite(state.domain.policy.mean).all()
    assert "estimator/eta" in record.metrics


def test_the_share_that_is_executed_is_the_users_choice(
    double_domain: Callable[..., Any], tmp_path: Any
) -> None:
    config = replace(CONFIG, estimator="fast", anchor_fraction=0.5, groups=8)
    state: Any = start(config, double_domain(), tmp_path)
    warm_up(state, config)
    record = improve(state, config)
    # 64 proposals, half of them drawn on average: 32 ± 4 standard deviations of √(64/4) = 4.
    assert 16 <= int(record.outcomes.executed.sum()) <= 48
