"""Anchors: which rollouts are really executed, drawn before any real score is known.

Notation (shared by all of ``wmrl_embodied.estimators``):
    runs        independent runs advanced side by side; training has none
    groups      N, groups of a step; each shares one task and start
    group       G, rollouts of a group
    execute     m_j, whether rollout j was drawn for real execution
    probability p_j, the probability with which it was drawn, in (0, 1]
    fraction    f, the share of the rollouts that is to be executed
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_envs.errors import InvalidInputError

_WATER_FILLING_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What is to be executed, and with which probability each rollout was chosen."""

    execute: Bool[Tensor, "*runs groups group"]
    """m_j: True where rollout j is to be executed."""

    probability: Float[Tensor, "*runs groups group"]
    """p_j: probability of that choice, known before any real score."""

    def __post_init__(self) -> None:
        """Reject probabilities by which nothing can be divided."""
        drawn = self.probability[self.execute]
        low, high = self.probability.aminmax()
        if drawn.numel() > 0 and not float(drawn.min()) > 0.0:
            raise InvalidInputError(
                "probability must be above 0 where execute is true, got "
                f"{float(drawn.min())}; a rollout that could not be drawn cannot be corrected for"
            )
        if not (float(low) >= 0.0 and float(high) <= 1.0):
            raise InvalidInputError(
                f"probability must be in [0, 1], got {float(low)} to {float(high)}"
            )


def draw_groups(
    shape: tuple[int, ...], *, fraction: float, generator: torch.Generator | None
) -> Draw:
    """Draw whole groups uniformly without replacement, at least one unless ``fraction`` is 0.

    Args:
        shape: ``(*runs, groups, group)``.
        fraction: Share of the groups to execute, in [0, 1].
        generator: Source of the draw.
    """
    *runs, groups, _group = shape
    count = _count(groups, fraction)
    execute = _choose((*runs, groups), count, generator)[..., None].expand(shape)
    return Draw(execute=execute, probability=torch.full(shape, count / groups))


def draw_rollouts(
    shape: tuple[int, ...], *, fraction: float, generator: torch.Generator | None
) -> Draw:
    """Draw single rollouts uniformly without replacement, at least one unless ``fraction`` is 0.

    Args:
        shape: ``(*runs, groups, group)``.
        fraction: Share of the rollouts to execute, in [0, 1].
        generator: Source of the draw.
    """
    *runs, groups, group = shape
    count = _count(groups * group, fraction)
    execute = _choose((*runs, groups * group), count, generator).view(shape)
    return Draw(execute=execute, probability=torch.full(shape, count / (groups * group)))


def draw_active(
    probability: Float[Tensor, "*runs groups group"], *, generator: torch.Generator | None
) -> Draw:
    """Draw each rollout with its own probability; the number drawn varies by less than one.

    Systematic sampling along a random order: a comb of unit spacing and random phase is laid over
    the cumulated probabilities, so that the inclusion probability of rollout j is exactly p_j.

    Args:
        probability: p_j, in (0, 1].
        generator: Source of the draw.
    """
    flat = probability.flatten(-2)
    order = torch.rand(flat.shape, generator=generator, dtype=flat.dtype).argsort(-1)
    phase = torch.rand((*flat.shape[:-1], 1), generator=generator, dtype=flat.dtype)
    passed = torch.floor(flat.gather(-1, order).cumsum(-1) + phase)
    hit = passed.diff(dim=-1, prepend=torch.zeros_like(phase)) > 0
    execute = torch.zeros_like(hit).scatter(-1, order, hit).view(probability.shape)
    return Draw(execute=execute & (probability > 0), probability=probability)


def active_probability(
    gain: Float[Tensor, "*runs groups group"], *, fraction: float, floor: float
) -> Float[Tensor, "*runs groups group"]:
    """Return p_j proportional to ``floor + (1 - floor) gain_j / mean gain``, at most 1.

    Its mean is ``fraction``: mass cut off at 1 is spread over the others. ``floor`` bounds the
    coefficients 1/p_j by 1/(floor * fraction), whatever the gains are.

    Args:
        gain: Expected gain of executing each rollout, at least 0: gradient norm times the
            standard deviation of what the world model leaves unexplained.
        fraction: Share of the rollouts to execute, in (0, 1].
        floor: Share that is spread uniformly, in (0, 1].
    """
    mean = gain.mean((-2, -1), keepdim=True)
    relative = torch.where(mean > 0, gain / mean.clamp_min(torch.finfo(gain.dtype).tiny), 1.0)
    probability = fraction * (floor + (1.0 - floor) * relative)
    budget = fraction * gain.shape[-1] * gain.shape[-2]
    for _ in range(_WATER_FILLING_ROUNDS):
        full = probability >= 1.0
        if not bool((probability > 1.0).any()):
            break
        held = torch.where(full, 0.0, probability).sum((-2, -1), keepdim=True)
        left = (budget - full.sum((-2, -1), keepdim=True)).clamp_min(0.0)
        probability = torch.where(full, 1.0, probability * (left / held.clamp_min(1e-12)))
    return probability.clamp(floor * fraction, 1.0)


def _count(available: int, fraction: float) -> int:
    return max(1, round(fraction * available)) if fraction > 0.0 else 0


def _choose(
    shape: tuple[int, ...], count: int, generator: torch.Generator | None
) -> Bool[Tensor, "..."]:
    order = torch.rand(shape, generator=generator).argsort(-1)
    chosen = torch.zeros(shape, dtype=torch.bool)
    return chosen.scatter(-1, order[..., :count], value=True)
