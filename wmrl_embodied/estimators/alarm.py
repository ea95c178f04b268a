"""Alarm: is the policy exploiting the world model?

A constant optimism of the world model is harmless; *growth* of (predicted - real) on executed
rollouts since the start is not: the policy has found what the world model overrates. The level
says nothing, so the first pairs set the reference.

Notation:
    gap        predicted - measured of one executed rollout, weighted by 1/p_j
    growth     running mean of the gap - mean gap of the reference pairs
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_CLEAR_SHARE = 0.5


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
    """Reference and running mean of the gap."""

    reference: Float[Tensor, "*runs"]
    """Sum of the reference steps' gaps, each times its pairs."""

    reference_pairs: Float[Tensor, "*runs"]
    """Pairs in the reference."""

    recent: Float[Tensor, "*runs"]
    """Decayed sum of gaps, each times its pairs."""

    recent_square: Float[Tensor, "*runs"]
    """Decayed sum of squared gaps, each times its pairs."""

    recent_pairs: Float[Tensor, "*runs"]
    """Decayed number of pairs."""

    on: Bool[Tensor, "*runs"]
    """Whether the alarm is on."""


def start(runs: tuple[int, ...], *, dtype: torch.dtype) -> AlarmState:
    """Return a state without pairs, alarm off."""
    zeros = torch.zeros(runs, dtype=dtype)
    return AlarmState(
        reference=zeros,
        reference_pairs=zeros,
        recent=zeros,
        recent_square=zeros,
        recent_pairs=zeros,
        on=torch.zeros(runs, dtype=torch.bool),
    )


def growth(state: AlarmState) -> Float[Tensor, "*runs"]:
    """Return how much more optimistic the world model is now than at the start."""
    now = state.recent / state.recent_pairs.clamp_min(1e-12)
    then = state.reference / state.reference_pairs.clamp_min(1e-12)
    return torch.where((state.recent_pairs > 0) & (state.reference_pairs > 0), now - then, 0.0)


def standard_error(state: AlarmState) -> Float[Tensor, "*runs"]:
    """Return the standard error of the growth."""
    pairs = state.recent_pairs.clamp_min(1e-12)
    variance = (state.recent_square / pairs - (state.recent / pairs).square()).clamp_min(0.0)
    return (variance * (1.0 / pairs + 1.0 / state.reference_pairs.clamp_min(1e-12))).sqrt()


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
    weight = torch.where(observed, 1.0 / probability.clamp_min(1e-12), 0.0)
    gap = torch.where(observed, predicted - measured, 0.0)
    total = weight.sum((-2, -1)).clamp_min(1e-12)
    mean = (weight * gap).sum((-2, -1)) / total
    square = (weight * gap.square()).sum((-2, -1)) / total
    # Unequal weights carry less information than their number: Kish's effective sample size.
    pairs = total.square() / weight.square().sum((-2, -1)).clamp_min(1e-12)
    pairs = torch.where(observed.any(-1).any(-1), pairs, 0.0)
    learning = (state.reference_pairs < limits.reference_pairs).to(pairs.dtype)
    new = AlarmState(
        reference=state.reference + learning * pairs * mean,
        reference_pairs=state.reference_pairs + learning * pairs,
        recent=limits.decay * state.recent + pairs * mean,
        recent_square=limits.decay * state.recent_square + pairs * square,
        recent_pairs=limits.decay * state.recent_pairs + pairs,
        on=state.on,
    )
    grown = growth(new)
    raised = (
        (grown > limits.threshold) & (grown > limits.sigmas * standard_error(new)) & (learning == 0)
    )
    held = state.on & (grown > _CLEAR_SHARE * limits.threshold)
    return AlarmState(
        reference=new.reference,
        reference_pairs=new.reference_pairs,
        recent=new.recent,
        recent_square=new.recent_square,
        recent_pairs=new.recent_pairs,
        on=raised | held,
    )
