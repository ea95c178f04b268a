"""Coefficients: hand-worked residuals, and the unbiasedness that everything rests on."""

import pytest
import torch

from wmrl_embodied.estimators import coefficients
from wmrl_embodied.estimators.anchors import draw_active, draw_groups, draw_rollouts


def test_group_residual_worked_by_hand() -> None:
    centred = torch.tensor([[0.2, -0.2], [0.1, -0.1]])
    measured = torch.tensor([[1.0, 0.0], [torch.nan, torch.nan]])
    observed = torch.tensor([[True, True], [False, False]])

    residual = coefficients.group_residual(centred, measured, observed, torch.full((2, 2), 0.5))

    # ((1 - 0.5) - 0.2) / 0.5 = 0.6 and ((0 - 0.5) + 0.2) / 0.5 = -0.6; nothing was executed below
    torch.testing.assert_close(residual, torch.tensor([[0.6, -0.6], [0.0, 0.0]]))


def test_a_group_of_equal_real_scores_keeps_its_residual() -> None:
    centred = torch.tensor([[0.3, -0.3]])
    everything = torch.ones(1, 2, dtype=torch.bool)

    residual = coefficients.group_residual(centred, torch.ones(1, 2), everything, torch.ones(1, 2))

    torch.testing.assert_close(residual, -centred)  # it says: there is no difference


def test_a_lone_observation_says_nothing_about_its_group() -> None:
    observed = torch.tensor([[True, False, False]])
    measured = torch.tensor([[1.0, torch.nan, torch.nan]])

    residual = coefficients.group_residual(torch.zeros(1, 3), measured, observed, torch.ones(1, 3))

    torch.testing.assert_close(residual, torch.zeros(1, 3))


def test_a_partly_missing_group_is_centred_on_what_came_back() -> None:
    centred = torch.tensor([[0.3, 0.0, -0.3]])
    measured = torch.tensor([[1.0, 0.0, torch.nan]])
    observed = torch.tensor([[True, True, False]])

    residual = coefficients.group_residual(centred, measured, observed, torch.ones(1, 3))

    # gaps 1 - 0.3 = 0.7 and 0 - 0 = 0, minus their mean 0.35
    torch.testing.assert_close(residual, torch.tensor([[0.35, -0.35, 0.0]]))


def test_rollout_residual_worked_by_hand() -> None:
    residual = coefficients.rollout_residual(
        torch.tensor([[0.2, -0.1]]),
        torch.tensor([[0.6, torch.nan]]),
        torch.tensor([[True, False]]),
        torch.tensor([[0.25, 0.25]]),
    )

    torch.testing.assert_close(residual, torch.tensor([[1.6, 0.0]]))  # (0.6 - 0.2) / 0.25


def test_missing_executions_raise_the_weight_of_those_that_came_back() -> None:
    execute = torch.tensor([[True, True], [True, True]])
    observed = torch.tensor([[True, True], [True, False]])

    corrected = coefficients.effective_probability(torch.full((2, 2), 0.4), execute, observed)

    torch.testing.assert_close(corrected, torch.full((2, 2), 0.3))  # 0.4 * 3 / 4


def _adversary() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    measured = (torch.rand(6, 8, generator=generator) < 0.4).double()
    centred = (1.0 - measured) - (1.0 - measured).mean(-1, keepdim=True)
    sketch = torch.randn(6, 8, 10, generator=generator).double()
    return measured, centred, sketch


def _gradients(unit: str, *, eta: float, missing: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    measured, centred, sketch = _adversary()
    shape, count = (20_000, 6, 8), 20_000
    generator = torch.Generator().manual_seed(1)
    if unit == "group":
        draw = draw_groups(shape, fraction=0.5, generator=generator)
    elif unit == "rollout":
        draw = draw_rollouts(shape, fraction=0.25, generator=generator)
    else:
        weights = torch.rand(6, 8, generator=generator) * 0.5 + 0.1
        draw = draw_active(weights.expand(shape), generator=generator)
    lost = torch.rand((count, 6, 1) if unit == "group" else shape, generator=generator) < missing
    observed = draw.execute & ~lost
    probability = coefficients.effective_probability(
        draw.probability, draw.execute, observed
    ).double()
    if unit == "group":
        real = measured - measured.mean(-1, keepdim=True)
        residual = coefficients.group_residual(
            centred.expand(shape), measured.expand(shape), observed, probability
        )
    else:
        real = measured - 0.7
        residual = coefficients.rollout_residual(
            centred.expand(shape), real.expand(shape), observed, probability
        )
    c = coefficients.combine(centred.expand(shape), residual, torch.full((count,), eta).double())
    gradients = (c.flatten(-2) @ sketch.flatten(0, 1)) / 48
    truth = (real.flatten() @ sketch.flatten(0, 1)) / 48
    return gradients, truth


@pytest.mark.parametrize("unit", ["group", "rollout", "active"])
def test_trusting_the_residual_is_unbiased_even_for_an_adversary(unit: str) -> None:
    gradients, truth = _gradients(unit, eta=1.0)

    error = gradients.mean(0) - truth
    standard_error = gradients.std(0) / gradients.shape[0] ** 0.5
    assert (error.abs() < 4.5 * standard_error).all()

    half, _ = _gradients(unit, eta=0.5)
    visible = (half.mean(0) - truth).abs() / (half.std(0) / half.shape[0] ** 0.5)
    assert visible.max() > 20  # the same test sees the bias of half trust


def test_missing_executions_leave_the_gradient_unbiased() -> None:
    gradients, truth = _gradients("rollout", eta=1.0, missing=0.3)

    error = (gradients.mean(0) - truth).abs()
    assert (error < 4.5 * gradients.std(0) / gradients.shape[0] ** 0.5).all()


def test_partial_trust_shrinks_the_bias_by_one_minus_eta() -> None:
    none, truth = _gradients("group", eta=0.0)
    half, _ = _gradients("group", eta=0.75)

    torch.testing.assert_close(
        half.mean(0) - truth, 0.25 * (none.mean(0) - truth), atol=0.003, rtol=0.02
    )


def test_dropping_groups_of_equal_scores_would_bias_the_update() -> None:
    # Two groups: real scores differ in one, are equal in the other; predictions claim the same.
    measured = torch.tensor([[1.0, 0.0], [1.0, 1.0]]).double()
    centred = torch.tensor([[0.5, -0.5], [0.5, -0.5]]).double()
    everything = torch.ones(2, 2, dtype=torch.bool)
    one = torch.tensor(1.0).double()

    kept = coefficients.group_residual(centred, measured, everything, torch.ones(2, 2).double())

    torch.testing.assert_close(
        coefficients.combine(centred, kept, one),
        torch.tensor([[0.5, -0.5], [0.0, 0.0]]).double(),
    )


def test_real_share_worked_by_hand() -> None:
    residual = torch.tensor([[1.0, -1.0]])
    coefficient = torch.tensor([[0.8, -0.2]])

    share = coefficients.real_share(residual, coefficient, torch.tensor(0.25))

    torch.testing.assert_close(share, torch.tensor(0.5))  # 2 * 0.25 / 1
