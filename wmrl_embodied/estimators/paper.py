"""Paper: the published two-part correction, by its rules, as the baseline to beat.

Executed groups use their real scores and the others calibrated predictions; all groups are
standardised, and executed ones weigh up to four times as much.

Notation:
    f̂        calibrated score: 10 equal bins → bin means → pool-adjacent-violators → interpolation
    s²       running mean of mean[((f̂ - mean f̂) - (r - mean r))²] / Var(r) over executed groups
    w        clip(1 + c s², 1, 4), weight of executed groups; c makes it 2 at first, then is frozen

Source: World Model RL (arXiv 2608.12564) and its public release.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import isotonic_regression
from torch import Tensor

from wmrl_embodied.estimators import calibration
from wmrl_embodied.estimators.advantage import standardised_advantage
from wmrl_embodied.estimators.coefficients import complete_groups, masked_mean

BINS = 10
CAPACITY = 5_000
FIRST_PAIRS = 200
REFIT_PAIRS = 64
HALF_LIFE_GROUPS = 64.0
CALIBRATION_GROUPS = 32
LARGEST_WEIGHT = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperState:
    """The published rule's memory."""

    predicted: Float[Tensor, "*runs capacity"]
    """Ring of the newest pairs' predicted scores."""

    measured: Float[Tensor, "*runs capacity"]
    """Ring of the newest pairs' real scores."""

    pairs: Int[Tensor, "*runs"]
    """Pairs ever pushed."""

    fitted: Int[Tensor, "*runs"]
    """Pairs at the last fit."""

    table: Float[Tensor, "*runs edges"]
    """The map, on twice as many cells as bins so that bin centres are knots."""

    error: Float[Tensor, "*runs"]
    """s²."""

    groups: Float[Tensor, "*runs"]
    """Executed groups with spread seen so far."""

    factor: Float[Tensor, "*runs"]
    """c; 0 until it is set."""


def start(runs: tuple[int, ...], *, capacity: int, dtype: torch.dtype) -> PaperState:
    """Return an empty memory of ``capacity`` pairs: identity map, weight 1."""
    zeros = torch.zeros(runs, dtype=dtype)
    counts = torch.zeros(runs, dtype=torch.long)
    edges = 2 * BINS + 1
    return PaperState(
        predicted=torch.zeros(*runs, capacity, dtype=dtype),
        measured=torch.zeros(*runs, capacity, dtype=dtype),
        pairs=counts,
        fitted=counts,
        table=torch.linspace(0.0, 1.0, edges, dtype=dtype).expand(*runs, edges).clone(),
        error=zeros,
        groups=zeros,
        factor=zeros,
    )


def push(
    state: PaperState,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> PaperState:
    """Push the step's pairs, refit if due, then move s² and set c; all before the step's use.

    Args:
        state: Past steps.
        predicted: World-model scores.
        measured: Real scores; read only where ``observed``.
        observed: True where a real score exists.
    """
    seen = observed.flatten(-2)
    order = seen.long().cumsum(-1) - 1
    capacity = state.measured.shape[-1]
    slot = torch.where(seen, (state.pairs[..., None] + order) % capacity, capacity)
    pushed = replace(
        state,
        predicted=_insert(state.predicted, slot, predicted.flatten(-2)),
        measured=_insert(state.measured, slot, measured.flatten(-2)),
        pairs=state.pairs + seen.sum(-1),
    )
    return _move_weight(_refit(pushed), predicted, measured, observed)


def advantage(
    state: PaperState,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    execute: Bool[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> Float[Tensor, "*runs groups group"]:
    """Return the weighted, standardised advantages of a step whose pairs were pushed.

    Args:
        state: Memory that already holds this step's pairs.
        predicted: World-model scores.
        measured: Real scores; read only where ``observed``.
        execute: What was drawn: whole groups.
        observed: What came back; missing rollouts of a drawn group are left out.
    """
    scores = torch.where(observed, measured, calibration.apply(state.table, predicted))
    anchored = execute.any(-1, keepdim=True)
    graded = torch.where(anchored, observed, torch.ones_like(observed))
    weight = anchor_weight(state)[..., None, None]
    return standardised_advantage(scores, graded) * torch.where(anchored, weight, 1.0)


def curve(
    state: PaperState,
) -> tuple[Float[Tensor, "*runs edges"], Float[Tensor, "*runs cells"]]:
    """Return the map on its edges, and the pairs held in each of its cells."""
    cells = state.table.shape[-1] - 1
    held = torch.arange(state.measured.shape[-1]) < state.pairs[..., None]
    cell = (state.predicted * cells).long().clamp(0, cells - 1)
    counts = torch.zeros(*cell.shape[:-1], cells, dtype=state.measured.dtype)
    return state.table.clone(), counts.scatter_add(-1, cell, held.to(counts.dtype))


def anchor_weight(state: PaperState) -> Float[Tensor, "*runs"]:
    """Return w; 1 until c is set."""
    return (1.0 + state.factor * state.error).clamp(1.0, LARGEST_WEIGHT)


def _insert(
    ring: Float[Tensor, "*runs capacity"],
    slot: Int[Tensor, "*runs rollouts"],
    values: Float[Tensor, "*runs rollouts"],
) -> Float[Tensor, "*runs capacity"]:
    spare = torch.cat([ring, ring[..., :1]], dim=-1)  # the last slot takes what is not observed
    return spare.scatter(-1, slot, values)[..., :-1]


def _refit(state: PaperState) -> PaperState:
    due = (state.pairs >= FIRST_PAIRS) & (state.pairs - state.fitted >= REFIT_PAIRS)
    if not bool(due.any()):
        return state
    held = torch.arange(state.measured.shape[-1]) < state.pairs[..., None]
    cell = (state.predicted * BINS).long().clamp(0, BINS - 1)
    zeros = torch.zeros(*cell.shape[:-1], BINS, dtype=state.measured.dtype)
    count = zeros.scatter_add(-1, cell, held.to(zeros.dtype))
    total = zeros.scatter_add(-1, cell, torch.where(held, state.measured, 0.0))
    table, sums = state.table.clone(), torch.stack([count, total])
    for run in torch.nonzero(due.reshape(-1)).squeeze(-1).tolist():
        fitted = _fit(*sums.view(2, -1, BINS)[:, run].double().numpy())
        table.view(-1, table.shape[-1])[run] = torch.from_numpy(fitted).to(table.dtype)
    return replace(state, table=table, fitted=torch.where(due, state.pairs, state.fitted))


def _fit(count: np.ndarray, total: np.ndarray) -> np.ndarray:
    held = count > 0
    centres = (np.arange(BINS) + 0.5) / BINS
    means = isotonic_regression(total[held] / count[held], weights=count[held]).x
    return np.interp(np.linspace(0.0, 1.0, 2 * BINS + 1), centres[held], means)


def _move_weight(
    state: PaperState,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> PaperState:
    kept = complete_groups(observed)
    scores = calibration.apply(state.table, predicted)
    real = torch.where(kept, measured - masked_mean(measured, kept), 0.0)
    model = torch.where(kept, scores - masked_mean(scores, kept), 0.0)
    variance = real.square().sum(-1)
    usable = variance > 0
    ratio = torch.where(usable, (model - real).square().sum(-1) / variance.clamp_min(1e-12), 0.0)
    count = usable.sum(-1)
    mean = ratio.sum(-1) / count.clamp_min(1)
    keep = torch.where(state.groups > 0, torch.exp2(-count / HALF_LIFE_GROUPS), 0.0)
    error = torch.where(count > 0, torch.lerp(mean, state.error, keep.to(mean.dtype)), state.error)
    groups = state.groups + count
    unset = (state.factor == 0) & (groups >= CALIBRATION_GROUPS) & (error > 0)
    factor = torch.where(unset, 1.0 / error.clamp_min(1e-12), state.factor)
    return replace(state, error=error, groups=groups, factor=factor)
