"""Suite: estimators compared at equal cost under nine kinds of world-model error.

Notation:
    final     normalised expected real score when the budget is spent
    speed-up  cost at which ``real`` reaches 95 % of its own final score, over the cost at which an
              estimator reaches the same score; both read from curves averaged over seeds
    worse     a cell counts as worse (better) than a baseline where the paired difference of final
              scores over seeds differs from 0 by more than its two-sided 95 % Student interval
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float
from scipy.stats import t as student
from torch import Tensor

from wmrl_embodied.estimators.config import PRESETS, EstimatorConfig, preset
from wmrl_embodied.simulate.engine import REAL_STEP_COST, Curves, OptimizerConfig, train
from wmrl_embodied.simulate.world_models import BIASES, ORDERED, Bias, Cell
from wmrl_envs.errors import InvalidInputError

BASELINES = ("real", "anchors_only")
_QUICK_PRESETS = ("real", "anchors_only", "paper", "balanced", "auto")
_TARGET_SHARE = 0.95
_SEEDS_AT_ONCE = 10

LEARNING_RATES: dict[str, dict[str, float]] = {
    "sgd": {
        "real": 9.0,
        "anchors_only": 4.0,
        "world_model_only": 12.0,
        "paper": 6.0,
        "fast": 6.0,
        "balanced": 12.0,
        "unbiased": 12.0,
        "auto": 12.0,
        "auto_random": 6.0,
        "auto_groups": 6.0,
    },
    "adam": {
        "real": 0.05,
        "anchors_only": 0.05,
        "world_model_only": 0.05,
        "paper": 0.05,
        "fast": 0.05,
        "balanced": 0.05,
        "unbiased": 0.05,
        "auto": 0.05,
        "auto_random": 0.05,
        "auto_groups": 0.05,
    },
}
"""Step sizes. For ``sgd`` the best mean final score over all cells of seeds 1000 to 1003, out of 3,
6 and 12 (4 and 9 as well for the two baselines); for ``adam`` one untuned value."""

_EPOCHS = {"sgd": 1, "adam": 4}


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulateConfig:
    """Which estimators are compared, on how much."""

    presets: tuple[str, ...] = tuple(PRESETS)
    """Estimators; ``real`` and ``anchors_only`` are always added."""

    seeds: int = 20
    """Problems for each cell."""

    first_seed: int = 0
    """Number of the first problem; step sizes were chosen on 1000 to 1003."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    """Plain gradient steps, or Adam with four clipped epochs a batch."""

    biases: tuple[Bias, ...] = BIASES
    """How world models are wrong."""

    noises: tuple[float, ...] = (0.1, 0.3)
    """Standard deviations of the world models' noise."""

    scores: tuple[Literal["binary", "continuous"], ...] = ("binary", "continuous")
    """Kinds of real score."""

    real_steps: float = 40.0
    """Budget, in steps of real GRPO (160 executions each)."""

    points: int = 40
    """Points of each curve."""

    learning_rate: float | None = None
    """Step size for all estimators; None: each one's own."""

    def __post_init__(self) -> None:
        """Reject comparisons that could not be made."""
        unknown = [name for name in self.presets if name not in PRESETS]
        if unknown:
            raise InvalidInputError(
                f"presets must be among {', '.join(PRESETS)}, got {', '.join(unknown)}"
            )
        if self.seeds < 2:
            raise InvalidInputError(
                f"seeds must be at least 2, got {self.seeds}; intervals need more than one"
            )
        if self.real_steps <= 0.0 or self.points < 1:
            raise InvalidInputError(
                "real_steps must be above 0 and points at least 1, got "
                f"{self.real_steps} and {self.points}"
            )
        if not (self.biases and self.noises and self.scores):
            raise InvalidInputError("biases, noises and scores must each name at least one value")
        if not all(0.0 <= noise <= 1.0 for noise in self.noises):
            raise InvalidInputError(f"noises must be in [0, 1], got {self.noises}")


def quick(config: SimulateConfig) -> SimulateConfig:
    """Return a smaller comparison of the same kind, for a first look within a minute.

    At most 4 seeds, binary scores, a shorter budget and, unless presets were named, the five
    estimators one would ask about first.
    """
    named = config.presets != SimulateConfig().presets
    return replace(
        config,
        presets=config.presets if named else _QUICK_PRESETS,
        seeds=min(config.seeds, 4),
        scores=("binary",),
        real_steps=min(config.real_steps, 25.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate over seeds with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One estimator in one cell."""

    cell: Cell
    final: Interval
    minus_real: Interval
    minus_anchors: Interval
    speedup: float | None
    """None where 95 % of real GRPO's final score was never reached."""

    executed: float
    """Mean number of rollouts really executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetResult:
    """One estimator over all cells."""

    name: str
    cells: tuple[CellResult, ...]
    curves: Curves

    def summary(self) -> dict[str, float | int | None]:
        """Return the row of the table.

        ``speedup`` is the geometric mean over the cells whose world model orders rollouts
        correctly (all, if there are none); a cell that never got there counts with the ratio
        that its whole budget would give, an upper bound.
        """
        finals = [cell.final.mean for cell in self.cells]
        ordered = [cell for cell in self.cells if cell.cell.bias in ORDERED] or list(self.cells)
        return {
            "mean": sum(finals) / len(finals),
            "worst": min(finals),
            "worse_than_real": sum(cell.minus_real.high < 0.0 for cell in self.cells),
            "better_than_real": sum(cell.minus_real.low > 0.0 for cell in self.cells),
            "worse_than_anchors_only": sum(cell.minus_anchors.high < 0.0 for cell in self.cells),
            "speedup": _geometric_mean([cell.speedup for cell in ordered]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """The whole comparison."""

    config: SimulateConfig
    presets: tuple[PresetResult, ...] = field(default=())

    def summary(self) -> dict[str, dict[str, dict[str, float | int | None]]]:
        """Return ``{"presets": {name: row}}``, the shape of ``wmrl simulate --json``."""
        return {"presets": {result.name: result.summary() for result in self.presets}}


def cells_of(config: SimulateConfig) -> tuple[Cell, ...]:
    """Return every combination of bias, noise and kind of score."""
    return tuple(
        Cell(bias=bias, noise=noise, binary=kind == "binary")
        for bias in config.biases
        for noise in config.noises
        for kind in config.scores
    )


def run_suite(config: SimulateConfig) -> SuiteResult:
    """Train every estimator in every cell and compare them at equal cost.

    Args:
        config: What is compared.
    """
    names = list(dict.fromkeys((*BASELINES, *config.presets)))
    curves = {name: train_estimator(config, name, preset(name)) for name in names}
    return SuiteResult(
        config=config,
        presets=tuple(compare(config, name, curves[name], curves) for name in names),
    )


def train_estimator(config: SimulateConfig, name: str, estimator: EstimatorConfig) -> Curves:
    """Return one estimator's curves on all seeds and cells.

    Args:
        config: The comparison.
        name: Preset whose step size is used.
        estimator: The estimator, usually that preset's own.
    """
    rate = config.learning_rate or LEARNING_RATES[config.optimizer][name]
    optimizer = OptimizerConfig(
        kind=config.optimizer, learning_rate=rate, epochs=_EPOCHS[config.optimizer]
    )
    seeds = list(range(config.first_seed, config.first_seed + config.seeds))
    parts = [
        train(
            estimator,
            optimizer,
            seeds=seeds[first : first + _SEEDS_AT_ONCE],
            cells=cells_of(config),
            budget=config.real_steps * REAL_STEP_COST,
            points=config.points,
        )
        for first in range(0, len(seeds), _SEEDS_AT_ONCE)
    ]
    return Curves(
        costs=parts[0].costs,
        values=torch.cat([part.values for part in parts]),
        executed=torch.cat([part.executed for part in parts]),
    )


def compare(
    config: SimulateConfig, name: str, curves: Curves, baselines: dict[str, Curves]
) -> PresetResult:
    """Return one estimator's results, cell by cell, beside ``real`` and ``anchors_only``.

    Args:
        config: The comparison.
        name: Name of the estimator.
        curves: Its curves.
        baselines: Curves of at least ``real`` and ``anchors_only`` on the same seeds.
    """
    real, anchors = baselines["real"], baselines["anchors_only"]
    final = curves.values[..., -1]
    results = []
    for number, cell in enumerate(cells_of(config)):
        value = final[:, number]
        results.append(
            CellResult(
                cell=cell,
                final=interval(value),
                minus_real=interval(value - real.values[:, number, -1]),
                minus_anchors=interval(value - anchors.values[:, number, -1]),
                speedup=speedup(
                    curves.costs,
                    curves.values[:, number].mean(0),
                    real.values[:, number].mean(0),
                ),
                executed=float(curves.executed[:, number].mean()),
            )
        )
    return PresetResult(name=name, cells=tuple(results), curves=curves)


def interval(values: Float[Tensor, " seeds"]) -> Interval:
    """Return the mean over seeds with its two-sided 95 % Student interval."""
    count = values.numel()
    mean = float(values.double().mean())
    half = float(student.ppf(0.975, count - 1)) * float(values.double().std()) / count**0.5
    return Interval(mean=mean, low=mean - half, high=mean + half)


def speedup(
    costs: Float[Tensor, " points"],
    curve: Float[Tensor, " points"],
    real_curve: Float[Tensor, " points"],
) -> float | None:
    """Return real GRPO's cost to 95 % of its final score over this estimator's; None if never.

    Args:
        costs: Common grid.
        curve: Mean curve of the estimator.
        real_curve: Mean curve of real GRPO.
    """
    target = _TARGET_SHARE * float(real_curve[-1])
    needed, real_needed = _first_cost(costs, curve, target), _first_cost(costs, real_curve, target)
    if needed is None or real_needed is None:
        return None
    return real_needed / max(needed, 1e-9)


def _first_cost(costs: Tensor, curve: Tensor, target: float) -> float | None:
    above = torch.nonzero(curve >= target).flatten()
    if above.numel() == 0:
        return None
    after = int(above[0])
    if after == 0:
        return float(costs[0])
    low, high = float(curve[after - 1]), float(curve[after])
    share = (target - low) / (high - low)
    return float(costs[after - 1]) + share * float(costs[after] - costs[after - 1])


def _geometric_mean(ratios: list[float | None]) -> float:
    return math.exp(
        sum(math.log(1.0 if ratio is None else ratio) for ratio in ratios) / len(ratios)
    )
