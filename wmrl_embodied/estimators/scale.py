"""Scale: the one number by which all advantages of a batch are divided.

Groups are not divided by their own standard deviation, which would blow the residual wiggles of a
nearly flat prediction up to unit size; a running root mean square keeps the step size steady.

Notation:
    mixed    running mean of c² over all rollouts
    spread   running mean of (r - mean_group r)² over executed rollouts
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleState:
    """Decayed sums; total over mass is the mean so far."""

    mixed: Float[Tensor, "*runs"]
    """Decayed sum of mean c²."""

    mixed_mass: Float[Tensor, "*runs"]
    """Decayed number of steps in ``mixed``."""

    spread: Float[Tensor, "*runs"]
    """Decayed sum of mean squared real differences."""

    spread_mass: Float[Tensor, "*runs"]
    """Decayed number of steps in ``spread``."""


def start(runs: tuple[int, ...], *, dtype: torch.dtype) -> ScaleState:
    """Return a state without steps."""
    zeros = torch.zeros(runs, dtype=dtype)
    return ScaleState(mixed=zeros, mixed_mass=zeros, spread=zeros, spread_mass=zeros)


def update(
    state: ScaleState,
    mixed: Float[Tensor, "*runs"],
    spread: Float[Tensor, "*runs"],
    *,
    decay: float,
) -> ScaleState:
    """Add one step; a mean square of 0 (nothing to measure) leaves its sum as it is.

    Args:
        state: Past steps.
        mixed: Mean of c².
        spread: Mean of squared real differences.
        decay: Factor by which a step's weight falls every step.
    """
    seen, varied = mixed > 0, spread > 0
    return ScaleState(
        mixed=torch.where(seen, decay * state.mixed + mixed, state.mixed),
        mixed_mass=torch.where(seen, decay * state.mixed_mass + 1.0, state.mixed_mass),
        spread=torch.where(varied, decay * state.spread + spread, state.spread),
        spread_mass=torch.where(varied, decay * state.spread_mass + 1.0, state.spread_mass),
    )


def root_mean_square(
    total: Float[Tensor, "*runs"], mass: Float[Tensor, "*runs"]
) -> Float[Tensor, "*runs"]:
    """Return sqrt(total / mass); 1 before the first step."""
    return torch.where(mass > 0, total / mass.clamp_min(1e-12), 1.0).sqrt()
