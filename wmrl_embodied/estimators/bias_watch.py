"""Bias watch: what a step says about the world model's bias, and whether it stays in use.

Notation: see :mod:`wmrl_embodied.estimators.monitor`.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from wmrl_embodied.estimators import monitor
from wmrl_embodied.estimators.config import EstimatorConfig
from wmrl_embodied.estimators.linear import Step, auditing
from wmrl_embodied.estimators.state import EstimatorState
from wmrl_envs.errors import InvalidInputError


def fallback_groups(config: EstimatorConfig, groups: int) -> int:
    """Return how many of ``groups`` ordinary groups are generated and executed in the fallback."""
    return max(1, round(config.fallback_fraction * groups))


def watch(
    state: EstimatorState,
    config: EstimatorConfig,
    step: Step,
    sketch: Float[Tensor, "*runs groups group dims"],
) -> EstimatorState:
    """Return the state with a step's evidence of bias in it.

    Args:
        state: Past knowledge.
        config: The estimator.
        step: The step, as :func:`see` returned it.
        sketch: z, or a sketch of it.

    Raises:
        InvalidInputError: If the sketch's length changes between steps.
    """
    dims, groups = sketch.shape[-1], step.centred.shape[-2]
    held = state.monitor
    if int(state.progress.steps) == 0:
        held = monitor.start(tuple(step.eta.shape), dims=dims, dtype=sketch.dtype)
    if held.mean.shape[-1] != dims:
        raise InvalidInputError(
            f"sketch must have {held.mean.shape[-1]} numbers a rollout as in earlier steps, got {dims}"
        )
    ordinary = max(int(state.progress.groups), groups)
    flat = sketch.flatten(-3, -2)
    usual = config.anchor_fraction * ordinary * step.centred.shape[-1]
    held = monitor.update(
        held,
        _gradient(step.residual, flat),
        information=step.observed.sum((-2, -1)) / usual,
        window=config.monitor_window,
    )
    if config.fallback:
        off = state.progress.fallback
        few = fallback_groups(config, ordinary) / ordinary
        used = torch.where(step.observed, step.centred / step.probability, 0.0)
        held = monitor.update_signal(
            held,
            _gradient(torch.where(off[..., None, None], used, step.centred), flat),
            information=torch.where(off, few, 1.0).to(sketch.dtype),
            window=config.monitor_window,
        )
    return replace(state, monitor=held)


def advance(state: EstimatorState, config: EstimatorConfig, step: Step) -> EstimatorState:
    """Return the state one step on: counters, scale, and whether predictions stay in use."""
    progress = state.progress
    off = progress.fallback
    if config.fallback and not auditing(state, config):
        off = monitor.fallback(
            monitor.evidence(state.monitor),
            monitor.signal(state.monitor),
            active=off,
            steps=state.monitor.steps,
            confidence=config.monitor_confidence,
        )
    groups = torch.tensor(step.centred.shape[-2])
    return replace(
        state,
        scale=step.scale,
        progress=replace(
            progress,
            steps=progress.steps + 1,
            groups=torch.maximum(progress.groups, groups),
            fallback=off,
        ),
    )


def _gradient(
    weight: Float[Tensor, "*runs groups group"], sketch: Float[Tensor, "*runs rollouts dims"]
) -> Float[Tensor, "*runs dims"]:
    flat = weight.flatten(-2)
    return (flat.unsqueeze(-2) @ sketch).squeeze(-2) / flat.shape[-1]
