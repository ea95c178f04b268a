"""State: everything an estimator has learned, as one record of records of tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from wmrl_embodied.estimators import (
    alarm,
    baseline,
    calibration,
    monitor,
    paper,
    residual_noise,
    scale,
    slope,
    state_records,
    task_lines,
)
from wmrl_embodied.estimators.config import EstimatorConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Counters of a run."""

    steps: Int[Tensor, ""]
    """Steps observed."""

    groups: Int[Tensor, ""]
    """Groups of an ordinary step, the unit of the monitor's information."""

    fallback: Bool[Tensor, "*runs"]
    """Whether predictions are out of use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorState:
    """What has been learned from past steps."""

    progress: Progress
    calibration: calibration.CalibrationState
    tasks: task_lines.TaskState
    slope: slope.SlopeState
    baseline: baseline.BaselineState
    noise: residual_noise.NoiseState
    monitor: monitor.MonitorState
    alarm: alarm.AlarmState
    scale: scale.ScaleState
    paper: paper.PaperState


def start(
    config: EstimatorConfig, *, num_tasks: int, runs: tuple[int, ...], dtype: torch.dtype
) -> EstimatorState:
    """Return the state before the first step.

    Args:
        config: Decides which parts need memory.
        num_tasks: Number of tasks.
        runs: Leading shape: independent runs side by side.
        dtype: Of every sum.
    """
    lines = num_tasks if config.task_pairs is not None else 0
    capacity = paper.CAPACITY if config.rule == "paper" else 0
    return EstimatorState(
        progress=Progress(
            steps=torch.tensor(0),
            groups=torch.tensor(0),
            fallback=torch.zeros(runs, dtype=torch.bool),
        ),
        calibration=calibration.start(runs, cells=config.calibration_cells, dtype=dtype),
        tasks=task_lines.start(runs, num_tasks=lines, dtype=dtype),
        slope=slope.start(runs, dtype=dtype),
        baseline=baseline.start(runs, dtype=dtype),
        noise=residual_noise.start(runs, dtype=dtype),
        monitor=monitor.start(runs, dims=0, dtype=dtype),
        alarm=alarm.start(runs, dtype=dtype),
        scale=scale.start(runs, dtype=dtype),
        paper=paper.start(runs, capacity=capacity, dtype=dtype),
    )


def to_tensors(state: EstimatorState) -> dict[str, Tensor]:
    """Return copies of all tensors by ``part.field``."""
    return state_records.flatten(_parts(state))


def from_tensors(like: EstimatorState, stored: Mapping[str, Tensor]) -> EstimatorState:
    """Return the state that :func:`to_tensors` stored.

    Args:
        like: A state of the same configuration.
        stored: Tensors by ``part.field``.

    Raises:
        InvalidInputError: If a tensor is missing or does not fit the configuration.
    """
    parts = _parts(like).items()
    return replace(
        like, **{name: state_records.restore(name, part, stored) for name, part in parts}
    )


def _parts(state: EstimatorState) -> dict[str, state_records.TensorRecord]:
    return {field.name: getattr(state, field.name) for field in fields(EstimatorState)}
