"""Linear rule: one step of c = f' + η e, seen through past knowledge, and what it teaches.

Notation: see :mod:`wmrl_embodied.estimators.coefficients`.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wmrl_embodied.estimators import (
    alarm,
    baseline,
    calibration,
    coefficients,
    monitor,
    residual_noise,
    scale,
    slope,
    task_lines,
)
from wmrl_embodied.estimators.advantage import centred_advantage, mean_square
from wmrl_embodied.estimators.anchors import Draw
from wmrl_embodied.estimators.config import EstimatorConfig
from wmrl_embodied.estimators.state import EstimatorState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step's scores, in the terms of the linear rule."""

    observed: Bool[Tensor, "*runs groups group"]
    """True where a real score exists."""

    probability: Float[Tensor, "*runs groups group"]
    """p_j, corrected for missing executions."""

    pooled: Float[Tensor, "*runs groups group"]
    """Score on the map of all tasks."""

    calibrated: Float[Tensor, "*runs groups group"]
    """f, on the task's own line where there is one."""

    signal: Float[Tensor, "*runs groups group 2"]
    """x, the slopes' regressors."""

    slopes: Float[Tensor, "*runs 2"]
    """Within-group slopes on calibrated and raw score."""

    centred: Float[Tensor, "*runs groups group"]
    """f'."""

    target: Float[Tensor, "*runs groups group"]
    """r - b; 0 where not observed."""

    residual: Float[Tensor, "*runs groups group"]
    """e."""

    eta: Float[Tensor, "*runs"]
    """η."""

    evidence: monitor.Evidence
    """What the monitor knew."""

    coefficient: Float[Tensor, "*runs groups group"]
    """c."""

    scale: scale.ScaleState
    """Scale with this step in it."""

    root: Float[Tensor, "*runs"]
    """What c is divided by."""


def see(
    state: EstimatorState,
    config: EstimatorConfig,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    draw: Draw,
    observed: Bool[Tensor, "*runs groups group"],
    tasks: Int[Tensor, "*runs groups"],
) -> Step:
    """Return a step in the terms of the linear rule, from past knowledge alone.

    Args:
        state: Past knowledge.
        config: The estimator.
        predicted: Raw world-model scores.
        measured: Real scores; read only where ``observed``.
        draw: What was drawn.
        observed: What came back.
        tasks: Task of each group.
    """
    pooled, calibrated = calibrate(state, config, predicted, tasks)
    signal = slope.signals(calibrated, predicted)
    slopes = within_group_slopes(state, config)
    centred = (signal * slopes[..., None, None, :]).sum(-1)
    probability = coefficients.effective_probability(draw.probability, draw.execute, observed)
    kept, target, residual = _correct(
        state, config, centred, calibrated, measured, observed, probability
    )
    found = monitor.evidence(state.monitor)
    eta = trust(state, config, found)
    coefficient = coefficients.combine(centred, residual, eta)
    if config.fallback:
        alone = torch.where(kept, target / probability, 0.0)
        coefficient = torch.where(state.progress.fallback[..., None, None], alone, coefficient)
    scaled, root = _rescale(state, config, coefficient, measured, kept)
    return Step(
        observed=kept,
        probability=probability,
        pooled=pooled,
        calibrated=calibrated,
        signal=signal,
        slopes=slopes,
        centred=centred,
        target=target,
        residual=residual,
        eta=eta,
        evidence=found,
        coefficient=coefficient,
        scale=scaled,
        root=root,
    )


def calibrate(
    state: EstimatorState,
    config: EstimatorConfig,
    predicted: Float[Tensor, "*runs groups group"],
    tasks: Int[Tensor, "*runs groups"],
) -> tuple[Float[Tensor, "*runs groups group"], Float[Tensor, "*runs groups group"]]:
    """Return scores on the map of all tasks, and on each task's own line where there is one.

    Without a world model both are 0: nothing that follows may depend on predictions.
    """
    if not config.use_world_model:
        return torch.zeros_like(predicted), torch.zeros_like(predicted)
    if config.rule == "paper":
        pooled = calibration.apply(state.paper.table, predicted)
        return pooled, pooled
    if config.calibration == "none":
        return predicted, predicted
    pooled = calibration.apply(state.calibration.table, predicted)
    if config.task_pairs is None:
        return pooled, pooled
    return pooled, task_lines.apply(state.tasks, pooled, tasks, task_pairs=config.task_pairs)


def within_group_slopes(state: EstimatorState, config: EstimatorConfig) -> Float[Tensor, "*runs 2"]:
    """Return the slopes on calibrated and raw score; both 0 without a world model."""
    if config.slope == "fixed" or not config.use_world_model:
        fixed = torch.zeros_like(state.slope.cross)
        fixed[..., 0] = config.slope_prior if config.use_world_model else 0.0
        return fixed
    return slope.solve(
        state.slope,
        joint=config.slope == "joint",
        prior=config.slope_prior,
        prior_pairs=config.slope_prior_pairs,
        maximum=config.slope_max,
    )


def auditing(state: EstimatorState, config: EstimatorConfig) -> bool:
    """Return whether the next step belongs to the audit."""
    return int(state.progress.steps) < config.audit_steps


def trust(
    state: EstimatorState, config: EstimatorConfig, found: monitor.Evidence
) -> Float[Tensor, "*runs"]:
    """Return η of the next step; 1 during an alarm and in the fallback."""
    if config.eta != "auto":
        eta = torch.full_like(state.slope.square, config.eta)
    elif auditing(state, config):
        eta = torch.full_like(state.slope.square, config.audit_eta)
    else:
        eta = monitor.trust(
            found,
            confidence=config.monitor_confidence,
            horizon=config.monitor_horizon,
            least=config.eta_min,
        )
    return torch.where(state.alarm.on | state.progress.fallback, 1.0, eta)


def learn(
    state: EstimatorState,
    config: EstimatorConfig,
    step: Step,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    tasks: Int[Tensor, "*runs groups"],
) -> EstimatorState:
    """Return the state with a step's pairs in it, after the step was used.

    Without a world model there is only the baseline to learn.

    Args:
        state: Past knowledge.
        config: The estimator.
        step: The step, as :func:`see` returned it.
        predicted: Raw world-model scores.
        measured: Real scores; read only where observed.
        tasks: Task of each group.
    """
    seen, half_life = step.observed, config.calibration_half_life
    level = baseline.update(
        state.baseline,
        step.calibrated,
        measured,
        seen,
        step.probability,
        decay=config.baseline_decay,
        slope_half_life=config.slope_half_life,
    )
    if not config.use_world_model:
        return replace(state, baseline=level)
    pairs = calibration.push(state.calibration, predicted, measured, seen, half_life=half_life)
    lines = state.tasks
    if config.task_pairs is not None:
        lines = task_lines.update(lines, step.pooled, measured, seen, tasks, half_life=half_life)
    return replace(
        state,
        calibration=calibration.refit(
            pairs, every=config.calibration_refit, line_pairs=config.calibration_line_pairs
        ),
        tasks=lines,
        slope=slope.update(
            state.slope, step.signal, step.target, seen, half_life=config.slope_half_life
        ),
        baseline=level,
        noise=residual_noise.update(
            state.noise, predicted, step.target - step.centred, seen, half_life=half_life
        ),
        alarm=_alarm(state, config, step, predicted, measured),
    )


def _correct(
    state: EstimatorState,
    config: EstimatorConfig,
    centred: Float[Tensor, "*runs groups group"],
    calibrated: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    probability: Float[Tensor, "*runs groups group"],
) -> tuple[
    Bool[Tensor, "*runs groups group"],
    Float[Tensor, "*runs groups group"],
    Float[Tensor, "*runs groups group"],
]:
    """Return which observations count, r - b and e, by whole groups or by single rollouts."""
    off = state.progress.fallback
    if config.unit == "group" or bool(off.any()):
        kept = coefficients.complete_groups(observed)
        target = torch.where(kept, measured - coefficients.masked_mean(measured, kept), 0.0)
        by_group = (kept, target, coefficients.group_residual(centred, measured, kept, probability))
        if config.unit == "group" or bool(off.all()):
            return by_group
    level = baseline.baseline(state.baseline, calibrated)
    target = torch.where(observed, measured - level, 0.0)
    residual = coefficients.rollout_residual(centred, target, observed, probability)
    by_rollout = (observed, target, residual)
    if not bool(off.any()):
        return by_rollout
    kept, target, residual = (
        torch.where(off[..., None, None], group, rollout)
        for group, rollout in zip(by_group, by_rollout, strict=True)
    )
    return kept, target, residual


def _rescale(
    state: EstimatorState,
    config: EstimatorConfig,
    coefficient: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> tuple[scale.ScaleState, Float[Tensor, "*runs"]]:
    off = state.progress.fallback
    scaled = scale.update(
        state.scale,
        torch.where(off, 0.0, coefficient.square().mean((-2, -1))),
        mean_square(centred_advantage(measured, observed), coefficients.complete_groups(observed)),
        decay=config.scale_decay,
    )
    mixed = scale.root_mean_square(scaled.mixed, scaled.mixed_mass)
    return scaled, torch.where(
        off, scale.root_mean_square(scaled.spread, scaled.spread_mass), mixed
    )


def _alarm(
    state: EstimatorState,
    config: EstimatorConfig,
    step: Step,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
) -> alarm.AlarmState:
    if not config.alarm:
        return state.alarm
    return alarm.update(
        state.alarm,
        predicted,
        measured,
        step.observed,
        step.probability,
        limits=alarm.AlarmLimits(
            reference_pairs=config.alarm_pairs,
            decay=config.baseline_decay,
            threshold=config.alarm_threshold,
            sigmas=config.alarm_sigmas,
        ),
    )
