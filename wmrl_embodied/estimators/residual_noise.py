"""Residual noise: what the world model leaves unexplained at each predicted score.

Notation:
    cells   equal cells over [0, 1]
    v(s)    expected squared residual ((r - b) - f')² of a rollout predicted at s
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_CELLS = 10
_PRIOR_PAIRS = 10.0
_PRIOR_SQUARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseState:
    """Decayed sums per cell of predicted score."""

    square: Float[Tensor, "*runs cells"]
    """Σ of squared residuals."""

    pairs: Float[Tensor, "*runs cells"]
    """Number of pairs."""


def start(runs: tuple[int, ...], *, dtype: torch.dtype) -> NoiseState:
    """Return a state without pairs."""
    zeros = torch.zeros(*runs, _CELLS, dtype=dtype)
    return NoiseState(square=zeros, pairs=zeros)


def deviation(
    state: NoiseState, predicted: Float[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs groups group"]:
    """Return sqrt v(s) for each rollout; cells with few pairs borrow from the mean of all cells.

    Args:
        state: Past pairs.
        predicted: World-model scores.
    """
    total, pairs = state.square.sum(-1, keepdim=True), state.pairs.sum(-1, keepdim=True)
    level = (total + _PRIOR_PAIRS * _PRIOR_SQUARE) / (pairs + _PRIOR_PAIRS)
    variance = (state.square + _PRIOR_PAIRS * level) / (state.pairs + _PRIOR_PAIRS)
    return variance.sqrt().gather(-1, _cell(predicted)).view(predicted.shape)


def update(
    state: NoiseState,
    predicted: Float[Tensor, "*runs groups group"],
    gap: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    *,
    half_life: float,
) -> NoiseState:
    """Add one step's pairs; older ones fade by half for every ``half_life`` new ones.

    Args:
        state: Past pairs.
        predicted: World-model scores.
        gap: (r - b) - f'; read only where ``observed``.
        observed: True where a real score exists.
        half_life: Pairs.
    """
    mask = observed.flatten(-2).to(state.pairs.dtype)
    fade = torch.exp2(-mask.sum(-1, keepdim=True) / half_life)
    square = torch.where(observed, gap, 0.0).square().flatten(-2)
    cell = _cell(predicted)
    return NoiseState(
        square=(state.square * fade).scatter_add(-1, cell, square),
        pairs=(state.pairs * fade).scatter_add(-1, cell, mask),
    )


def _cell(predicted: Float[Tensor, "*runs groups group"]) -> Tensor:
    return (predicted.flatten(-2) * _CELLS).long().clamp(0, _CELLS - 1)
