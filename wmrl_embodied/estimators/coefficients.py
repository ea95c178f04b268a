"""Coefficients: what each rollout contributes to the update, c_j = f'_j + η e_j.

The world model's centred prediction f' drives every rollout; the residual e, measured on executed
rollouts and divided by their probability, corrects it. Over the draw, E c = η (r - b) + (1 - η) f':
η = 1 is unbiased whatever the world model says (a difference estimator, as in prediction-powered
inference), and below 1 the bias shrinks by 1 - η.

Notation:
    centred   f'_j, the world model's prediction relative to its group, scaled by the slopes
    baseline  b_j, what a real score is compared with: its group's mean, or a prediction of it
    residual  e_j = (m_j / p_j) [(r_j - b_j) - f'_j]
    eta       η, trust in the residual, in [0, 1]

Source: prediction-powered inference and multi-fidelity control variates, applied to GRPO.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def effective_probability(
    probability: Float[Tensor, "*runs groups group"],
    execute: Bool[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> Float[Tensor, "*runs groups group"]:
    """Return p_j times the step's share of executions that came back.

    A missing execution counts as not drawn. When executions go missing for reasons of the
    infrastructure alone, the probability of *seeing* rollout j is p_j times that share, and
    dividing by it keeps the residual unbiased.

    Args:
        probability: p_j of the draw.
        execute: What was drawn.
        observed: What was drawn and came back with a score.
    """
    asked = execute.sum((-2, -1), keepdim=True)
    came = observed.sum((-2, -1), keepdim=True)
    return probability * torch.where(came > 0, came / asked.clamp_min(1), 1.0)


def complete_groups(
    observed: Bool[Tensor, "*runs groups group"],
) -> Bool[Tensor, "*runs groups group"]:
    """Return ``observed`` without the rollouts that have no observed companion in their group."""
    return observed & (observed.sum(-1, keepdim=True) >= 2)


def masked_mean(
    values: Float[Tensor, "*runs groups group"], mask: Bool[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs groups 1"]:
    """Return each group's mean over ``mask``; 0 for groups without any."""
    total = torch.where(mask, values, 0.0).sum(-1, keepdim=True)
    return total / mask.sum(-1, keepdim=True).clamp_min(1)


def group_residual(
    centred: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    probability: Float[Tensor, "*runs groups group"],
) -> Float[Tensor, "*runs groups group"]:
    """Return e_j for whole executed groups: real and predicted scores, each centred.

    A group whose real scores are all equal keeps its residual: there the world model claimed
    differences that do not exist, and dropping such groups would bias the update towards it.

    Args:
        centred: f'_j.
        measured: r_j; read only where ``observed``.
        observed: Observed rollouts; groups with a single one contribute nothing.
        probability: Effective p_j.
    """
    kept = complete_groups(observed)
    gap = torch.where(kept, measured, 0.0) - centred
    return torch.where(kept, (gap - masked_mean(gap, kept)) / probability, 0.0)


def rollout_residual(
    centred: Float[Tensor, "*runs groups group"],
    target: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    probability: Float[Tensor, "*runs groups group"],
) -> Float[Tensor, "*runs groups group"]:
    """Return e_j for rollouts executed on their own.

    Args:
        centred: f'_j.
        target: r_j - b_i, with a baseline that does not depend on this step's real scores; read
            only where ``observed``.
        observed: Observed rollouts.
        probability: Effective p_j.
    """
    return torch.where(observed, (target - centred) / probability, 0.0)


def combine(
    centred: Float[Tensor, "*runs groups group"],
    residual: Float[Tensor, "*runs groups group"],
    eta: Float[Tensor, "*runs"],
) -> Float[Tensor, "*runs groups group"]:
    """Return ``c_j = f'_j + η e_j``."""
    return centred + eta[..., None, None] * residual


def real_share(
    residual: Float[Tensor, "*runs groups group"],
    coefficient: Float[Tensor, "*runs groups group"],
    eta: Float[Tensor, "*runs"],
) -> Float[Tensor, "*runs"]:
    """Return Σ|η e| / Σ|c|: how much of the update's weight rests on real executions.

    It exceeds 1 where corrections mostly cancel predictions.
    """
    corrected = (eta[..., None, None] * residual).abs().sum((-2, -1))
    return corrected / coefficient.abs().sum((-2, -1)).clamp_min(1e-12)
