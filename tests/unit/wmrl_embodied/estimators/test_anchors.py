"""Draws keep their promises: the share asked for, and the probability that is divided by."""

from collections.abc import Callable

import pytest
import torch

from wmrl_embodied.estimators.anchors import (
    Draw,
    active_probability,
    draw_active,
    draw_groups,
    draw_rollouts,
)
from wmrl_envs.errors import InvalidInputError


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_group_draws_take_whole_groups() -> None:
    draw = draw_groups((20, 8), fraction=0.1, generator=_generator())

    assert draw.execute.sum(-1).unique().tolist() == [0, 8]
    assert int(draw.execute.sum()) == 2 * 8  # round(0.1 * 20) = 2 groups
    torch.testing.assert_close(draw.probability, torch.full((20, 8), 2 / 20))


def test_rollout_draws_take_the_share_asked_for() -> None:
    draw = draw_rollouts((20, 8), fraction=0.1, generator=_generator())

    assert int(draw.execute.sum()) == 16  # round(0.1 * 160)
    torch.testing.assert_close(draw.probability, torch.full((20, 8), 16 / 160))


@pytest.mark.parametrize("draw_kind", [draw_groups, draw_rollouts])
def test_at_least_one_is_drawn_unless_nothing_is_asked_for(draw_kind: Callable[..., Draw]) -> None:
    assert int(draw_kind((4, 2), fraction=0.01, generator=_generator()).execute.sum()) >= 1
    assert int(draw_kind((4, 2), fraction=0.0, generator=_generator()).execute.sum()) == 0


@pytest.mark.parametrize("draw_kind", [draw_groups, draw_rollouts])
def test_uniform_draws_favour_nobody(draw_kind: Callable[..., Draw]) -> None:
    draw = draw_kind((20_000, 5, 2), fraction=0.4, generator=_generator())

    share = draw.execute.float().mean(0)
    standard_error = (0.4 * 0.6 / 20_000) ** 0.5
    assert (share - 0.4).abs().max() < 5 * standard_error


def test_active_draws_include_each_rollout_with_its_own_probability() -> None:
    probability = torch.tensor([[0.05, 0.9, 0.3], [1.0, 0.25, 0.5]]).expand(40_000, 2, 3)

    draw = draw_active(probability, generator=_generator())

    share = draw.execute.float().mean(0)
    standard_error = (probability[0] * (1 - probability[0]) / 40_000).sqrt()
    assert ((share - probability[0]).abs() <= 5 * standard_error + 1e-6).all()


def test_active_draws_differ_in_size_by_less_than_one() -> None:
    probability = torch.rand(1_000, 6, 8, generator=_generator()) * 0.5 + 0.01

    draw = draw_active(probability, generator=_generator())

    difference = draw.execute.sum((-2, -1)) - probability.sum((-2, -1))
    assert difference.abs().max() < 1.0


def test_active_probability_worked_by_hand() -> None:
    gain = torch.tensor([[0.0, 2.0], [1.0, 1.0]])

    probability = active_probability(gain, fraction=0.2, floor=0.3)

    # 0.2 * (0.3 + 0.7 * gain / 1): gains 0, 2, 1, 1 give 0.06, 0.34, 0.2, 0.2
    torch.testing.assert_close(probability, torch.tensor([[0.06, 0.34], [0.2, 0.2]]))


def test_active_probability_spends_the_budget_even_when_some_are_certain() -> None:
    gain = torch.tensor([[100.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])

    probability = active_probability(gain, fraction=0.5, floor=0.3)

    assert probability.max() == 1.0
    torch.testing.assert_close(probability.sum(), torch.tensor(4.0))  # 0.5 * 8


def test_active_probability_is_uniform_without_gains() -> None:
    probability = active_probability(torch.zeros(2, 4), fraction=0.25, floor=0.3)

    torch.testing.assert_close(probability, torch.full((2, 4), 0.25))


def test_active_probability_never_falls_below_its_floor() -> None:
    gain = torch.rand(50, 20, 8, generator=_generator()).pow(8)

    probability = active_probability(gain, fraction=0.1, floor=0.3)

    assert probability.min() >= 0.3 * 0.1 - 1e-7


@pytest.mark.parametrize("probability", [1.5, -0.1])
def test_refuses_probabilities_outside_the_unit_interval(probability: float) -> None:
    with pytest.raises(InvalidInputError, match=r"probability must be in \[0, 1\]"):
        Draw(
            execute=torch.zeros(1, 2, dtype=torch.bool),
            probability=torch.full((1, 2), probability),
        )


def test_refuses_to_execute_what_could_not_be_drawn() -> None:
    with pytest.raises(InvalidInputError, match="probability must be above 0 where execute"):
        Draw(execute=torch.ones(1, 2, dtype=torch.bool), probability=torch.zeros(1, 2))
