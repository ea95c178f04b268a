"""Group-relative advantages, worked by hand."""

import torch

from wmrl_embodied.estimators.advantage import (
    centred_advantage,
    mean_square,
    standardised_advantage,
)


def test_centred_advantage_leaves_ungraded_rollouts_out() -> None:
    scores = torch.tensor([[1.0, 0.0, torch.nan], [0.4, torch.nan, torch.nan]])

    advantage = centred_advantage(scores, ~scores.isnan())

    # the mean of 1 and 0 is 0.5; a group with one graded rollout compares nothing
    torch.testing.assert_close(advantage, torch.tensor([[0.5, -0.5, 0.0], [0.0, 0.0, 0.0]]))


def test_a_missing_score_is_not_a_score_of_zero() -> None:
    missing = torch.tensor([[1.0, 0.0, torch.nan]])
    zero = torch.tensor([[1.0, 0.0, 0.0]])

    left_out = centred_advantage(missing, ~missing.isnan())
    scored = centred_advantage(zero, torch.ones(1, 3, dtype=torch.bool))

    assert not torch.allclose(left_out, scored)


def test_standardised_advantage_worked_by_hand() -> None:
    scores = torch.tensor([[1.0, 0.0, 0.0, 1.0]])

    advantage = standardised_advantage(scores, torch.ones(1, 4, dtype=torch.bool))

    # mean 0.5, std sqrt(4 * 0.25 / 3) = 0.57735, plus 1e-4
    expected = torch.tensor([[0.5, -0.5, -0.5, 0.5]]) / 0.57745
    torch.testing.assert_close(advantage, expected, atol=1e-5, rtol=0)


def test_standardising_blows_a_flat_prediction_up_and_centring_does_not() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = 0.5 + 0.01 * torch.randn(50, 8, generator=generator)
    graded = torch.ones_like(flat, dtype=torch.bool)

    assert standardised_advantage(flat, graded).square().mean().sqrt() > 0.8
    assert centred_advantage(flat, graded).square().mean().sqrt() < 0.02


def test_groups_of_equal_scores_have_no_advantage() -> None:
    graded = torch.ones(1, 4, dtype=torch.bool)

    torch.testing.assert_close(standardised_advantage(torch.ones(1, 4), graded), torch.zeros(1, 4))


def test_mean_square_counts_only_what_is_marked() -> None:
    values = torch.tensor([[3.0, 100.0], [1.0, torch.nan]])
    mask = torch.tensor([[True, False], [True, False]])

    torch.testing.assert_close(mean_square(values, mask), torch.tensor(5.0))  # (9 + 1) / 2
