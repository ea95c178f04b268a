"""Advantage: a score relative to its group, and the one scale all advantages share.

Notation:
    R_j      score of rollout j
    spread   running mean of squared coefficients
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_embodied.estimators.coefficients import complete_groups, masked_mean


def centred_advantage(
    scores: Float[Tensor, "*runs groups group"], graded: Bool[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs groups group"]:
    """Return ``R_j - mean`` over the graded rollouts of each group.

    Ungraded rollouts are left out and get 0; so do groups with fewer than two graded ones.

    Args:
        scores: R_j; read only where ``graded``.
        graded: True where a score exists.
    """
    kept = complete_groups(graded)
    return torch.where(kept, scores - masked_mean(scores, kept), 0.0)


def standardised_advantage(
    scores: Float[Tensor, "*runs groups group"],
    graded: Bool[Tensor, "*runs groups group"],
    *,
    offset: float = 1e-4,
) -> Float[Tensor, "*runs groups group"]:
    """Return ``(R_j - mean) / (std + offset)`` over the graded rollouts of each group.

    The standard deviation has n - 1 in its denominator. Dividing by it blows a nearly flat
    prediction up to unit size; only real scores deserve it.

    Args:
        scores: R_j; read only where ``graded``.
        graded: True where a score exists.
        offset: Keeps groups of equal scores finite.
    """
    centred = centred_advantage(scores, graded)
    count = complete_groups(graded).sum(-1, keepdim=True)
    variance = centred.square().sum(-1, keepdim=True) / (count - 1).clamp_min(1)
    return centred / (variance.sqrt() + offset)


def mean_square(
    values: Float[Tensor, "*runs groups group"], mask: Bool[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs"]:
    """Return the mean of squared values over ``mask``; 0 where it is empty."""
    total = torch.where(mask, values, 0.0).square().sum((-2, -1))
    return total / mask.sum((-2, -1)).clamp_min(1)


def running_mean(
    total: Float[Tensor, "*runs"],
    mass: Float[Tensor, "*runs"],
    value: Float[Tensor, "*runs"],
    *,
    decay: float,
) -> tuple[Float[Tensor, "*runs"], Float[Tensor, "*runs"]]:
    """Return the decayed (total, mass) with ``value`` added; their quotient is the mean so far."""
    return decay * total + (1.0 - decay) * value, decay * mass + (1.0 - decay)
