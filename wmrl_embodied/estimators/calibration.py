"""Calibration: the monotone map from predicted to expected real scores, learned from past pairs.

Pairs (predicted s, measured r) are held as decayed sums on a fine grid over [0, 1], so that the
memory is constant and a refit costs the same after ten pairs and after ten million. Isotonic
regression (SciPy's, which scikit-learn calls) on the cells' centroids is blended with a straight line while pairs are
few; the line is itself held near the identity by ten imagined pairs.

Notation:
    cells   K, cells of the grid
    table   values of the map on the K + 1 edges; between edges it is linear
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.optimize import isotonic_regression
from torch import Tensor

_IMAGINED_PAIRS = 10.0
_UNIFORM_VARIANCE = 1.0 / 12.0


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
    """Fit the map anew for the runs that have at least ``every`` fresh pairs.

    Args:
        state: Pairs so far.
        every: Fresh pairs that make a refit worth its time.
        line_pairs: Pairs at which isotonic regression and straight line weigh the same.
    """
    due = state.fresh >= every
    if not bool(due.any()):
        return state
    table, fresh = state.table.clone(), torch.where(due, 0.0, state.fresh)
    sums = torch.stack([state.weight, state.predicted, state.measured], dim=-2)
    for run in torch.nonzero(due.reshape(-1)).squeeze(-1).tolist():
        weight, predicted, measured = sums.view(-1, *sums.shape[-2:])[run].double().numpy()
        fitted = _fit(weight, predicted, measured, line_pairs)
        table.view(-1, table.shape[-1])[run] = torch.from_numpy(fitted).to(table.dtype)
    return CalibrationState(
        weight=state.weight,
        predicted=state.predicted,
        measured=state.measured,
        table=table,
        fresh=fresh,
    )


def _fit(
    weight: np.ndarray, predicted: np.ndarray, measured: np.ndarray, line_pairs: float
) -> np.ndarray:
    edges = np.linspace(0.0, 1.0, weight.size + 1)
    held = weight > 1e-6
    weight, x, y = weight[held], predicted[held] / weight[held], measured[held] / weight[held]
    total = weight.sum()
    mean_x, mean_y = (weight @ x) / total, (weight @ y) / total
    prior = _IMAGINED_PAIRS * _UNIFORM_VARIANCE
    centred = weight * (x - mean_x)
    slope = max(0.0, (centred @ (y - mean_y) + prior) / (centred @ (x - mean_x) + prior))
    level = (total * mean_y + _IMAGINED_PAIRS * mean_x) / (total + _IMAGINED_PAIRS)
    line = np.clip(level + slope * (edges - mean_x), 0.0, 1.0)
    steps = isotonic_regression(y, weights=weight).x
    share = total / (total + line_pairs)
    return share * np.interp(edges, x, steps) + (1.0 - share) * line
