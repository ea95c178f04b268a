"""Alarm: is the policy exploiting the world model?

A constant optimism of the world model is harmless; *growth* of (predicted - real) on executed
rollouts since the start is not: the policy has found what the world model overrates. The level
says nothing, so the first pairs set the reference.

Notation:
    gap        predicted - measured of one executed rollout, weighted by 1/p_j
    growth     running mean of the gap - mean gap of the reference pairs
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_CLEAR_SHARE = 0.5
_LEAST_PAIRS = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmLimits:
    """What counts as growth."""

    reference_pairs: float
    """Pairs that make up the reference."""

    decay: float
    """Factor by which a step's weight in the running mean falls every step."""

    threshold: float
    """Growth that counts as exploitation."""

    sigmas: float
    """Standard errors it must exceed as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
    """Reference and running moments of the gap: (pairs, Σ gap, Σ gap²)."""

    reference: Float[Tensor, "*runs 3"]
    """Moments of the first pairs."""

    recent: Float[Tensor, "*runs 3"]
    """Decayed moments of later pairs."""

    on: Bool[Tensor, "*runs"]
    """Whether the alarm is on."""


def start(runs: tuple[int, ...], *, dtype: torch.dtype) -> AlarmState:
    """Return a state without pairs, alarm off."""
    zeros = torch.zeros(*runs, 3, dtype=dtype)
    return AlarmState(reference=zeros, recent=zeros.clone(), on=torch.zeros(runs, dtype=torch.bool))


def growth(state: AlarmState) -> Float[Tensor, "*runs"]:
    """Return how much more optimistic the world model is now than at the start; 0 before pairs."""
    return _mean(state.recent) - _mean(state.reference)


def standard_error(state: AlarmState) -> Float[Tensor, "*runs"]:
    """Return the standard error of the growth."""
    pairs, _, square = state.recent.clamp_min(0.0).unbind(-1)
    pairs = pairs.clamp_min(_LEAST_PAIRS)
    variance = (square / pairs - _mean(state.recent).square()).clamp_min(0.0)
    then = state.reference[..., 0].clamp_min(_LEAST_PAIRS)
    return (variance * (1.0 / pairs + 1.0 / then)).sqrt()


def update(
    state: AlarmState,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    probability: Float[Tensor, "*runs groups group"],
    *,
    limits: AlarmLimits,
) -> AlarmState:
    """Add one step, and raise or clear the alarm.

    It is raised when the growth exceeds both limits, and cleared when the growth has fallen below
    half the threshold.

    Args:
        state: Past steps.
        predicted: Raw world-model scores.
        measured: Real scores; read only where ``observed``.
        observed: True where a real score exists.
        probability: p_j.
        limits: What counts as growth.
    """
    weight = torch.where(observed, 1.0 / probability, 0.0).flatten(-2)
    gap = torch.where(observed, predicted - measured, 0.0).flatten(-2)
    powers = torch.stack([torch.ones_like(gap), gap, gap.square(), weight], dim=-2)
    moments = (powers @ weight.unsqueeze(-1)).squeeze(-1)
    # Unequal weights carry less information than their number: Kish's effective sample size,
    # (Σ w)² / Σ w², is the weight of the step.
    share = moments[..., :1] / moments[..., 3:].clamp_min(_LEAST_PAIRS)
    added = moments[..., :3] * share
    learning = state.reference[..., 0] < limits.reference_pairs
    new = AlarmState(
        reference=torch.where(learning[..., None], state.reference + added, state.reference),
        recent=limits.decay * state.recent + added,
        on=state.on,
    )
    grown = growth(new)
    limit = (limits.sigmas * standard_error(new)).clamp_min(limits.threshold)
    raised = (grown > limit) & ~learning
    held = state.on & (grown > _CLEAR_SHARE * limits.threshold)
    return replace(new, on=raised | held)


def _mean(moments: Float[Tensor, "*runs 3"]) -> Float[Tensor, "*runs"]:
    return moments[..., 1] / moments[..., 0].clamp_min(_LEAST_PAIRS)
