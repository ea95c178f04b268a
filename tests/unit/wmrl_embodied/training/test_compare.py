"""Checks of ``wmrl_embodied.training.compare``."""

import numpy as np
import pytest

from wmrl_embodied.training.compare import Curve, Metrics, compare, cost_to_target, curve_of
from wmrl_envs.errors import InvalidInputError


def _curve(estimator: str, seed: int, costs: list[float], success: list[float]) -> Curve:
    return Curve(
        estimator=estimator,
        seed=seed,
        cost_s=np.array(costs, dtype=np.float64),
        success=np.array(success, dtype=np.float64),
        executions=np.array(costs, dtype=np.float64),
    )


def test_cost_to_target_is_linear_between_points() -> None:
    cost, success = np.array([0.0, 10.0, 20.0]), np.array([0.2, 0.4, 0.8])
    assert cost_to_target(cost, success, 0.6) == pytest.approx(15.0)
    assert cost_to_target(cost, success, 0.2) == 0.0


def test_a_run_that_never_gets_there_costs_infinitely_much() -> None:
    assert cost_to_target(np.array([0.0, 1.0]), np.array([0.1, 0.2]), 0.9) == float("inf")


def test_speed_up_is_the_reference_cost_over_ours_on_the_same_seed() -> None:
    curves = [
        _curve("real", 0, [0, 100], [0.0, 1.0]),
        _curve("real", 1, [0, 200], [0.0, 1.0]),
        _curve("auto", 0, [0, 25], [0.0, 1.0]),
        _curve("auto", 1, [0, 40], [0.0, 1.0]),
    ]
    rows = {row.estimator: row for row in compare(curves, reference="real")}
    assert rows["real"].speed_up == pytest.approx(1.0)
    assert rows["auto"].speed_up == pytest.approx(4.5)  # median of 100/25 and 200/40
    assert rows["auto"].reached == 2


def test_seeds_that_fail_pull_the_speed_up_down() -> None:
    curves = [_curve("real", seed, [0, 100], [0.0, 1.0]) for seed in range(3)]
    curves += [_curve("paper", 0, [0, 10], [0.0, 1.0])]
    curves += [_curve("paper", seed, [0, 10], [0.0, 0.1]) for seed in (1, 2)]
    paper = compare(curves, reference="real")[1]
    assert (paper.reached, paper.speed_up) == (1, 0.0)


def test_a_curve_begins_before_training_at_no_cost() -> None:
    steps: list[Metrics] = [
        {"cost/total_s": 5.0, "cost/executions": 2.0, "evaluation/held_out": None},
        {"cost/total_s": 9.0, "cost/executions": 4.0, "evaluation/held_out": 0.7},
    ]
    curve = curve_of(steps, estimator="auto", seed=0, before=0.3)
    assert curve.cost_s.tolist() == [0.0, 9.0]
    assert curve.success.tolist() == [0.3, 0.7]


def test_refuses_runs_that_were_never_evaluated() -> None:
    with pytest.raises(InvalidInputError, match=r"set evaluation\.every above 0"):
        curve_of([{"cost/total_s": 1.0}], estimator="auto", seed=0, before=0.0)


def test_refuses_a_reference_that_did_not_run() -> None:
    with pytest.raises(InvalidInputError, match=r"one of \['auto'\], got 'real'"):
        compare([_curve("auto", 0, [0], [0.5])], reference="real")
