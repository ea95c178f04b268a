"""Diagnostics, worked by hand."""

import torch

from wmrl_embodied.estimators.diagnostics import error_moments, rank_correlation


def test_error_moments_use_observed_rollouts_only() -> None:
    mean, variance = error_moments(
        torch.tensor([[0.9, 0.5, 0.1]]),
        torch.tensor([[0.5, 0.5, torch.nan]]),
        torch.tensor([[True, True, False]]),
    )

    torch.testing.assert_close(mean, torch.tensor(0.2))  # (0.4 + 0) / 2
    torch.testing.assert_close(variance, torch.tensor(0.04))  # 0.16 / 2 - 0.04


def test_error_moments_of_nothing_are_nan() -> None:
    mean, variance = error_moments(
        torch.ones(1, 2), torch.full((1, 2), torch.nan), torch.zeros(1, 2, dtype=torch.bool)
    )

    assert mean.isnan()
    assert variance.isnan()


def test_rank_correlation_worked_by_hand() -> None:
    predicted = torch.tensor([[0.1, 0.2, 0.9], [0.5, 0.4, 0.3]])
    measured = torch.tensor([[0.0, 0.3, 0.2], [1.0, 1.0, torch.nan]])

    tau = rank_correlation(predicted, measured, ~measured.isnan())

    # first group: (1, 2) and (1, 3) agree, (2, 3) disagrees; the second is tied
    torch.testing.assert_close(tau, torch.tensor(1 / 3))


def test_rank_correlation_compares_within_groups_only() -> None:
    predicted = torch.tensor([[0.1, 0.1], [0.9, 0.9]])
    measured = torch.tensor([[0.0, 0.0], [1.0, 1.0]])

    assert rank_correlation(predicted, measured, ~measured.isnan()).isnan()
