"""Baseline: the real score expected of a group, subtracted from single executed rollouts.

A rollout executed alone has no group mean to be compared with. Any value that does not depend on
the rollout leaves the gradient unbiased; the running mean of real scores, moved by what the world
model says of the group as a whole, leaves little variance.

Notation:
    ρ0   running mean of real scores, weighted by 1/p_j: the mean over all rollouts
    κ    slope of r - ρ0 on (group mean of f) - (running mean of f), in [0, 1]
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_NEUTRAL = 0.5
_NEUTRAL_STEPS = 0.05
_PRIOR_SQUARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineState:
    """Running sums of executed rollouts."""

    measured: Float[Tensor, "*runs"]
    """Decayed mean of m r/p."""

    mass: Float[Tensor, "*runs"]
    """Decayed mean of m/p: about the number of steps remembered."""

    predicted: Float[Tensor, "*runs"]
    """Running mean of calibrated scores."""

    cross: Float[Tensor, "*runs"]
    """Decayed Σ (f̄ - f̄_ema)(r - ρ0)."""

    square: Float[Tensor, "*runs"]
    """Decayed Σ (f̄ - f̄_ema)²."""


def start(runs: tuple[int, ...], *, dtype: torch.dtype) -> BaselineState:
    """Return a state that knows nothing: ρ0 is 0.5, κ is 0."""
    zeros = torch.zeros(runs, dtype=dtype)
    return BaselineState(
        measured=zeros, mass=zeros, predicted=zeros + _NEUTRAL, cross=zeros, square=zeros
    )


def mean_score(state: BaselineState) -> Float[Tensor, "*runs"]:
    """Return ρ0, which starts at 0.5 with the weight of a twentieth of a step."""
    return (state.measured + _NEUTRAL * _NEUTRAL_STEPS) / (state.mass + _NEUTRAL_STEPS)


def baseline(
    state: BaselineState, calibrated: Float[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs groups 1"]:
    """Return ``ρ0 + κ (f̄_i - f̄_ema)`` for each group.

    Args:
        state: Sums over past steps.
        calibrated: Calibrated scores f of this step, executed or not.
    """
    slope = (state.cross / (state.square + _PRIOR_SQUARE)).clamp(0.0, 1.0)
    shift = calibrated.mean(-1) - state.predicted[..., None]
    return (mean_score(state)[..., None] + slope[..., None] * shift)[..., None]


def update(
    state: BaselineState,
    calibrated: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    probability: Float[Tensor, "*runs groups group"],
    *,
    decay: float,
    slope_half_life: float,
) -> BaselineState:
    """Add one step's executed rollouts.

    Args:
        state: Sums over past steps.
        calibrated: Calibrated scores f.
        measured: Real scores; read only where ``observed``.
        observed: True where a real score exists.
        probability: p_j.
        decay: Factor by which a step's weight in ρ0 falls every step.
        slope_half_life: Steps after which a step's weight in κ has halved.
    """
    keep = 2.0 ** (-1.0 / slope_half_life)
    weight = torch.where(observed, 1.0 / probability, 0.0)
    real = torch.where(observed, measured, 0.0)
    group = calibrated.mean(-1)
    shift = (group - state.predicted[..., None])[..., None] * observed
    target = real - mean_score(state)[..., None, None]
    return BaselineState(
        measured=decay * state.measured + (weight * real).mean((-2, -1)),
        mass=decay * state.mass + weight.mean((-2, -1)),
        predicted=torch.lerp(group.mean(-1), state.predicted, decay),
        cross=keep * state.cross + (shift * target).sum((-2, -1)),
        square=keep * state.square + shift.square().sum((-2, -1)),
    )
