"""Calibration: the monotone map from predicted to expected real scores, learned from past pairs.

Pairs (predicted s, measured r) are held as decayed sums on a fine grid over [0, 1], so that the
memory is constant and a refit costs the same after ten pairs and after ten million. Isotonic
regression (SciPy's, which scikit-learn calls) on the cells' centroids is blended with a straight line while pairs are
few; the line is itself held near the identity by ten imagined pairs.

Notation:
    cells   K, cells of the grid
    table   values of the map on the K + 1 edges; between edges it is linear
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.optimize import isotonic_regression
from torch import Tensor

_IMAGINED_PAIRS = 10.0
_UNIFORM_VARIANCE = 1.0 / 12.0
_FRESH_SHARE = 0.05
_LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationState:
    """Pairs as sums per cell, and the map that was last fitted to them."""

    weight: Float[Tensor, "*runs cells"]
    """Decayed number of pairs."""

    predicted: Float[Tensor, "*runs cells"]
    """Decayed sum of predicted scores."""

    measured: Float[Tensor, "*runs cells"]
    """Decayed sum of measured scores."""

    table: Float[Tensor, "*runs edges"]
    """The map in use."""

    fresh: Float[Tensor, "*runs"]
    """Pairs since the map was fitted."""


def start(runs: tuple[int, ...], *, cells: int, dtype: torch.dtype) -> CalibrationState:
    """Return a state without pairs, whose map is the identity."""
    zeros = torch.zeros(*runs, cells, dtype=dtype)
    return CalibrationState(
        weight=zeros,
        predicted=zeros,
        measured=zeros,
        table=torch.linspace(0.0, 1.0, cells + 1, dtype=dtype).expand(*runs, cells + 1).clone(),
        fresh=torch.zeros(runs, dtype=dtype),
    )


def apply(
    table: Float[Tensor, "*runs edges"], scores: Float[Tensor, "*runs groups group"]
) -> Float[Tensor, "*runs groups group"]:
    """Return the map's value at each score; scores outside [0, 1] take the value of the near end.

    Args:
        table: Values on equally spaced edges over [0, 1].
        scores: Predicted scores.
    """
    cells = table.shape[-1] - 1
    flat = (scores.flatten(-2) * cells).clamp(0.0, cells)
    cell = flat.long().clamp_max(cells - 1)
    left = table.gather(-1, cell)
    right = table.gather(-1, cell + 1)
    return torch.lerp(left, right, flat - cell).view(scores.shape)


def push(
    state: CalibrationState,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    *,
    half_life: float,
) -> CalibrationState:
    """Add the observed pairs; older ones fade by half for every ``half_life`` new ones.

    Args:
        state: Pairs so far.
        predicted: World-model scores.
        measured: Real scores; read only where ``observed``.
        observed: True where a real score exists.
        half_life: Pairs.
    """
    cells = state.weight.shape[-1]
    mask = observed.flatten(-2).to(state.weight.dtype)
    scores = predicted.flatten(-2)
    cell = (scores * cells).long().clamp(0, cells - 1)
    count = mask.sum(-1, keepdim=True)
    fade = torch.exp2(-count / half_life)
    real = torch.where(observed, measured, 0.0).flatten(-2)
    return CalibrationState(
        weight=(state.weight * fade).scatter_add(-1, cell, mask),
        predicted=(state.predicted * fade).scatter_add(-1, cell, scores * mask),
        measured=(state.measured * fade).scatter_add(-1, cell, real),
        table=state.table,
        fresh=state.fresh + count.squeeze(-1),
    )


def refit(state: CalibrationState, *, every: float, line_pairs: float) -> CalibrationState:
    """Fit the map anew for the runs with enough fresh pairs: ``every``, and 5 % of those held.

    Args:
        state: Pairs so far.
        every: Fresh pairs that make a refit worth its time.
        line_pairs: Pairs at which isotonic regression and straight line weigh the same.
    """
    total = state.weight.sum(-1)
    due = (state.fresh >= every) & (state.fresh >= _FRESH_SHARE * total)
    if not bool(due.any()):
        return state
    weight, predicted, measured = state.weight[due], state.predicted[due], state.measured[due]
    line = _line(weight, predicted, measured)
    steps = torch.empty_like(line)
    sums = torch.stack([weight, predicted, measured], dim=1).double().numpy()
    for run, (run_weight, run_predicted, run_measured) in enumerate(sums):
        steps[run] = torch.from_numpy(_isotonic(run_weight, run_predicted, run_measured))
    share = (total[due] / (total[due] + line_pairs)).unsqueeze(-1)
    table, fresh = state.table.clone(), torch.where(due, 0.0, state.fresh)
    table[due] = torch.lerp(line, steps, share)
    return replace(state, table=table, fresh=fresh)


def _isotonic(weight: np.ndarray, predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    held = weight > _LEAST_WEIGHT
    weight, predicted, measured = weight[held], predicted[held], measured[held]
    levels = isotonic_regression(measured / weight, weights=weight).x
    edges = np.linspace(0.0, 1.0, held.size + 1)
    return np.interp(edges, predicted / weight, levels)


def _line(
    weight: Float[Tensor, "due cells"],
    predicted: Float[Tensor, "due cells"],
    measured: Float[Tensor, "due cells"],
) -> Float[Tensor, "due edges"]:
    count = weight.clamp_min(_LEAST_WEIGHT)
    x, y = predicted / count, measured / count
    total = weight.sum(-1, keepdim=True)
    mean_x = predicted.sum(-1, keepdim=True) / total
    mean_y = measured.sum(-1, keepdim=True) / total
    centred = weight * (x - mean_x)
    prior = _IMAGINED_PAIRS * _UNIFORM_VARIANCE
    covariance = (centred * (y - mean_y)).sum(-1, keepdim=True)
    variance = (centred * (x - mean_x)).sum(-1, keepdim=True)
    slope = ((covariance + prior) / (variance + prior)).clamp_min(0.0)
    level = (total * mean_y + _IMAGINED_PAIRS * mean_x) / (total + _IMAGINED_PAIRS)
    edges = torch.linspace(0.0, 1.0, weight.shape[-1] + 1, dtype=weight.dtype)
    return (level + slope * (edges - mean_x)).clamp(0.0, 1.0)
