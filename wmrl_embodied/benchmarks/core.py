"""Core benchmark: the estimator's own time a step, everything but execution and gradients."""

import json
import sys
import time
from dataclasses import dataclass

import torch
from rich.console import Console

from wmrl_embodied.estimators.config import preset
from wmrl_embodied.estimators.estimator import Estimator
from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreBenchmark:
    """Time drawing, advantages and learning of one estimator, refits of the calibrator included."""

    preset: str = "auto"
    """Estimator."""

    groups: int = 64
    """Groups a step."""

    group: int = 8
    """Rollouts a group."""

    dims: int = 144
    """Length of the sketched score vectors."""

    steps: int = 200
    """Steps timed in each repeat."""

    repeats: int = 5
    """Repeats; the fastest counts, since other programs can only slow one down."""

    json: bool = False
    """Print ``{"ms_per_step": …}`` and nothing else."""

    def __post_init__(self) -> None:
        """Reject steps that an estimator cannot take."""
        for name, value, least in (
            ("groups", self.groups, 1),
            ("group", self.group, 2),
            ("dims", self.dims, 1),
            ("steps", self.steps, 1),
            ("repeats", self.repeats, 1),
        ):
            if value < least:
                raise InvalidInputError(f"{name} must be at least {least}, got {value}")


def ms_per_step(config: CoreBenchmark) -> float:
    """Return the estimator's processor time for one step, in milliseconds, on one thread.

    Scores are random with a useful world model, so that every part of the estimator works.

    Args:
        config: What is timed.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    estimator = Estimator(preset(config.preset))
    shape = (config.groups, config.group)
    real = (torch.rand(shape, generator=generator) < 0.4).float()
    predicted = (real + 0.3 * torch.randn(shape, generator=generator)).clamp(0.0, 1.0)
    sketch = torch.randn(*shape, config.dims, generator=generator)
    tasks = torch.zeros(config.groups, dtype=torch.long)
    sensitivity = sketch.norm(dim=-1)

    def step() -> None:
        draw = estimator.draw(predicted, tasks=tasks, sensitivity=sensitivity, generator=generator)
        measured = torch.where(draw.execute, real, torch.nan)
        estimator.advantage(predicted, measured, draw, tasks=tasks)
        estimator.observe(predicted, measured, draw, tasks=tasks, sketch=sketch)

    def repeat() -> float:
        started = time.process_time()
        for _ in range(config.steps):
            step()
        return (time.process_time() - started) / config.steps * 1_000.0

    repeat()
    fastest = min(repeat() for _ in range(config.repeats))
    torch.set_num_threads(threads)
    return fastest


def main(config: CoreBenchmark) -> int:
    """Run the benchmark; return the exit status.

    Args:
        config: What is timed.
    """
    value = ms_per_step(config)
    if config.json:
        sys.stdout.write(json.dumps({"ms_per_step": value}) + "\n")
    else:
        Console().print(
            f"{config.preset}: {value:.2f} ms a step for {config.groups} × {config.group} rollouts"
        )
    return 0
