"""Slope: how much of a predicted difference within a group is real.

A map fitted over all tasks learns which tasks are easy; advantages live on differences between
rollouts of one group. The slope λ of real on predicted *within* groups says how far those can be
trusted: about 1 for a calibrated world model, 0 for a useless one. With the raw score as a second
regressor, a world model that orders rollouts backwards gets a negative weight and becomes useful.

Notation:
    signals   x_j = (f_j - mean_group f, s_j - mean_group s): calibrated and raw score, centred
    target    y_j = r_j - baseline
    gram      decayed Σ x xᵀ over executed rollouts;  cross: decayed Σ x y;  square: decayed Σ y²
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeState:
    """Decayed moments of the executed rollouts."""

    gram: Float[Tensor, "*runs signal signal"]
    """Σ x xᵀ."""

    cross: Float[Tensor, "*runs signal"]
    """Σ x y."""

    square: Float[Tensor, "*runs"]
    """Σ y²."""

    variance: Float[Tensor, "*runs signal"]
    """Running mean of x² over all rollouts, executed or not: the unit of the prior."""


def start(runs: tuple[int, ...], *, dtype: torch.dtype) -> SlopeState:
    """Return a state without evidence."""
    return SlopeState(
        gram=torch.zeros(*runs, 2, 2, dtype=dtype),
        cross=torch.zeros(*runs, 2, dtype=dtype),
        square=torch.zeros(runs, dtype=dtype),
        variance=torch.zeros(*runs, 2, dtype=dtype),
    )


def signals(
    calibrated: Float[Tensor, "*runs groups group"], predicted: Float[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs groups group 2"]:
    """Return calibrated and raw scores, each centred within its group."""
    both = torch.stack([calibrated, predicted], dim=-1)
    return both - both.mean(-2, keepdim=True)


def update(
    state: SlopeState,
    signal: Float[Tensor, "*runs groups group 2"],
    target: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    *,
    half_life: float,
) -> SlopeState:
    """Add one step's executed rollouts; older steps fade by half every ``half_life`` steps.

    Args:
        state: Moments so far.
        signal: x_j for all rollouts.
        target: y_j; read only where ``observed``.
        observed: True where a real score exists.
        half_life: Steps.
    """
    keep = 2.0 ** (-1.0 / half_life)
    x = signal.flatten(-3, -2)
    seen = observed.flatten(-2)
    y = torch.where(seen, target.flatten(-2), 0.0)
    masked = x * seen.unsqueeze(-1)
    variance = x.square().mean(-2)
    started = state.variance.sum(-1, keepdim=True) > 0
    return SlopeState(
        gram=keep * state.gram + masked.mT @ x,
        cross=keep * state.cross + (x * y.unsqueeze(-1)).sum(-2),
        square=keep * state.square + y.square().sum(-1),
        variance=torch.where(started, torch.lerp(variance, state.variance, keep), variance),
    )


def solve(
    state: SlopeState, *, joint: bool, prior: float, prior_pairs: float, maximum: float
) -> Float[Tensor, "*runs 2"]:
    """Return the slopes (λ on the calibrated score, on the raw score) by ridge regression.

    The prior is worth ``prior_pairs`` executed rollouts of typical spread and sits at
    ``(prior, 0)``. λ is held in [0, maximum]; the raw slope, used with ``joint`` only, in
    [-maximum, maximum].

    Args:
        state: Moments of past steps.
        joint: Regress on both signals instead of the calibrated one alone.
        prior: Slope on the calibrated score when nothing is known.
        prior_pairs: Strength of the prior, in executed rollouts.
        maximum: Bound; 0 switches the world model off.
    """
    ridge = prior_pairs * state.variance + torch.finfo(state.cross.dtype).eps
    first_ridge, second_ridge = ridge.unbind(-1)
    (gram_ff, gram_fs), (_, gram_ss) = (row.unbind(-1) for row in state.gram.unbind(-2))
    cross_f, cross_s = state.cross.unbind(-1)
    a, right = gram_ff + first_ridge, cross_f + prior * first_ridge
    if not joint:
        alone = (right / a).clamp(0.0, maximum)
        return torch.stack([alone, torch.zeros_like(alone)], dim=-1)
    d = gram_ss + second_ridge
    determinant = a * d - gram_fs * gram_fs
    first = (d * right - gram_fs * cross_s) / determinant
    second = (a * cross_s - gram_fs * right) / determinant
    return torch.stack([first.clamp(0.0, maximum), second.clamp(-maximum, maximum)], dim=-1)


def explained(state: SlopeState, slopes: Float[Tensor, "*runs 2"]) -> Float[Tensor, "*runs"]:
    """Return the within-group R² of past executed rollouts; at most 1, below 0 when it misleads."""
    fitted = (state.gram @ slopes.unsqueeze(-1)).squeeze(-1)
    gained = (slopes * (2.0 * state.cross - fitted)).sum(-1)
    return torch.where(state.square > 0, gained / state.square.clamp_min(1e-12), 0.0)
