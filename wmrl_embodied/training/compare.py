"""Comparison: the same run under several estimators and seeds, success against honest cost.

Notation:
    curve     (cost, success) after each step of a run; cost from its ledger, in CPU seconds
    target    a success rate
    C_m(t)    cost at which run m first reaches t
    speed-up  C_real(t) / C_m(t), on the same seed
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmrl_embodied.training.statistics import Interval, bootstrap_mean
from wmrl_envs.errors import InvalidInputError

Metrics = dict[str, float | int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """How one run's real success grew with what it cost."""

    estimator: str
    seed: int

    cost_s: NDArray[np.float64]
    """CPU seconds so far, shape (points,), increasing."""

    success: NDArray[np.float64]
    """Real success, shape (points,)."""

    executions: NDArray[np.float64]
    """Real executions so far, shape (points,)."""


def curve_of(steps: Sequence[Metrics], *, estimator: str, seed: int, before: float) -> Curve:
    """Return a run's curve from its logged metrics: evaluations on held-out starts.

    Args:
        steps: One dict a step, as logged.
        estimator: Name of the estimator preset.
        seed: Seed of the run.
        before: Success before training, which is where the curve begins at no cost.

    Raises:
        InvalidInputError: If no step was evaluated.
    """
    known = [step for step in steps if step.get("evaluation/held_out") is not None]
    if not known:
        raise InvalidInputError(
            "steps must hold at least one evaluation, got none; set evaluation.every above 0"
        )

    def column(name: str) -> NDArray[np.float64]:
        return np.array([step[name] for step in known], dtype=np.float64)

    return Curve(
        estimator=estimator,
        seed=seed,
        cost_s=np.concatenate([[0.0], column("cost/total_s")]),
        success=np.concatenate([[before], column("evaluation/held_out")]),
        executions=np.concatenate([[0.0], column("cost/executions")]),
    )


def cost_to_target(cost: NDArray[np.float64], success: NDArray[np.float64], target: float) -> float:
    """Return the cost at which success first reaches ``target``, linear between points.

    Infinite when it never does: a run that fails is not left out of a comparison.

    Args:
        cost: Shape (points,), increasing.
        success: Shape (points,).
        target: Success rate.
    """
    reached = np.flatnonzero(success >= target)
    if len(reached) == 0:
        return float("inf")
    first = int(reached[0])
    if first == 0:
        return float(cost[0])
    share = (target - success[first - 1]) / (success[first] - success[first - 1])
    return float(cost[first - 1] + share * (cost[first] - cost[first - 1]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One estimator against the reference, over seeds."""

    estimator: str
    seeds: int
    final: Interval
    """Success at the end, bootstrap over seeds."""

    cost_s: float
    """Mean cost of a whole run, CPU seconds."""

    executions: float
    """Mean real executions of a whole run."""

    reached: int
    """Seeds that reached the target."""

    speed_up: float
    """Median over seeds of the reference's cost to the target over this one's; 0 if not reached."""


def compare(curves: Sequence[Curve], *, reference: str, share: float = 0.95) -> list[Comparison]:
    """Return one row an estimator, against ``reference`` on the same seeds.

    The target is ``share`` of the way from the success before training to the reference's mean
    final success, the same for all.

    Args:
        curves: Runs of every estimator on the same seeds.
        reference: Name of the estimator compared against, usually ``"real"``.
        share: Part of the reference's gain that counts as reaching it.

    Raises:
        InvalidInputError: If the reference is not among the curves.
    """
    names = list(dict.fromkeys(curve.estimator for curve in curves))
    if reference not in names:
        raise InvalidInputError(f"reference must be one of {names}, got {reference!r}")
    base = {curve.seed: curve for curve in curves if curve.estimator == reference}
    start = float(np.mean([curve.success[0] for curve in base.values()]))
    final = float(np.mean([curve.success[-1] for curve in base.values()]))
    target = start + share * (final - start)
    rows = []
    for name in names:
        runs = [curve for curve in curves if curve.estimator == name]
        costs = [cost_to_target(run.cost_s, run.success, target) for run in runs]
        ratios = [
            cost_to_target(base[run.seed].cost_s, base[run.seed].success, target) / cost
            for run, cost in zip(runs, costs, strict=True)
            if run.seed in base and np.isfinite(cost) and cost > 0.0
        ]
        ratios += [0.0] * (len(runs) - len(ratios))
        rows.append(
            Comparison(
                estimator=name,
                seeds=len(runs),
                final=bootstrap_mean(np.array([run.success[-1] for run in runs])),
                cost_s=float(np.mean([run.cost_s[-1] for run in runs])),
                executions=float(np.mean([run.executions[-1] for run in runs])),
                reached=int(np.isfinite(costs).sum()),
                speed_up=float(np.median(ratios)),
            )
        )
    return rows
