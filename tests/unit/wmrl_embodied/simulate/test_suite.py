"""The comparison's arithmetic, worked by hand."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from wmrl_embodied.simulate import suite
from wmrl_embodied.simulate.engine import Curves
from wmrl_embodied.simulate.suite import SimulateConfig
from wmrl_envs.errors import InvalidInputError

_SMALL = SimulateConfig(
    presets=("auto",),
    seeds=3,
    biases=("none", "useless"),
    noises=(0.1,),
    scores=("binary",),
    real_steps=1.0,
    points=2,
)
_ROW = {
    "mean",
    "worst",
    "worse_than_real",
    "better_than_real",
    "worse_than_anchors_only",
    "speedup",
}


def _curves(finals: list[list[float]]) -> Curves:
    """Return curves that rise linearly to the given final values, ``finals[seed][cell]``."""
    final = torch.tensor(finals)
    return Curves(
        costs=torch.tensor([0.0, 50.0, 100.0]),
        values=torch.stack([0.0 * final, 0.5 * final, final], dim=-1),
        executed=torch.ones_like(final),
    )


def test_an_interval_worked_by_hand() -> None:
    found = suite.interval(torch.tensor([1.0, 2.0, 3.0]))

    # mean 2, standard error 1 / sqrt(3) = 0.5774, Student factor 4.3027 for 2 degrees
    assert found.mean == pytest.approx(2.0)
    assert found.high - 2.0 == pytest.approx(4.3027 * 0.57735, rel=1e-3)
    assert 2.0 - found.low == pytest.approx(found.high - 2.0)


def test_speedup_worked_by_hand() -> None:
    costs = torch.tensor([0.0, 50.0, 100.0])
    real = torch.tensor([0.0, 0.5, 1.0])
    fast = torch.tensor([0.0, 1.9, 1.9])

    # 95 % of 1: real needs 95, the other 0.95 / 1.9 * 50 = 25
    assert suite.speedup(costs, fast, real) == pytest.approx(95.0 / 25.0)
    assert suite.speedup(costs, real, real) == pytest.approx(1.0)


def test_an_estimator_that_never_arrives_has_no_speedup() -> None:
    costs = torch.tensor([0.0, 50.0, 100.0])

    assert (
        suite.speedup(costs, torch.tensor([0.0, 0.3, 0.9]), torch.tensor([0.0, 0.5, 1.0])) is None
    )


def test_cells_count_as_worse_or_better_by_paired_differences() -> None:
    real = _curves([[0.5, 0.5], [0.7, 0.7], [0.9, 0.9]])
    other = _curves(
        [[0.4, 0.61], [0.61, 0.79], [0.8, 1.0]]
    )  # -0.1 and +0.1, less than seeds differ
    baselines = {"real": real, "anchors_only": real}

    row = suite.compare(_SMALL, "auto", other, baselines).summary()

    assert row["worse_than_real"] == 1
    assert row["better_than_real"] == 1
    assert row["worse_than_anchors_only"] == 1
    assert row["worst"] == pytest.approx((0.4 + 0.61 + 0.8) / 3)
    assert row["mean"] == pytest.approx((0.4 + 0.61 + 0.8 + 0.61 + 0.79 + 1.0) / 6, abs=1e-6)


def test_real_is_neither_worse_nor_better_than_itself() -> None:
    real = _curves([[0.5, 0.5], [0.7, 0.7], [0.9, 0.9]])

    row = suite.compare(_SMALL, "real", real, {"real": real, "anchors_only": real}).summary()

    assert row["worse_than_real"] == row["better_than_real"] == 0
    assert row["speedup"] == pytest.approx(1.0)


def test_the_whole_suite_has_36_cells() -> None:
    assert len(suite.cells_of(SimulateConfig())) == 36
    assert len({cell.name for cell in suite.cells_of(SimulateConfig())}) == 36


def test_a_run_reports_baselines_and_asked_presets_in_the_promised_shape() -> None:
    summary = suite.run_suite(_SMALL).summary()

    assert set(summary) == {"presets"}
    assert set(summary["presets"]) == {"real", "anchors_only", "auto"}
    assert all(set(row) == _ROW for row in summary["presets"].values())


def test_quick_is_small_and_keeps_named_presets() -> None:
    small = suite.quick(SimulateConfig())
    named = suite.quick(SimulateConfig(presets=("auto_groups",)))

    assert small.seeds == 4
    assert len(suite.cells_of(small)) == 18
    assert "auto" in small.presets
    assert named.presets == ("auto_groups",)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("presets", ("best",), "presets must be among real, .*, got best"),
        ("seeds", 1, "seeds must be at least 2, got 1"),
        ("real_steps", 0.0, "real_steps must be above 0"),
        ("noises", (1.5,), r"noises must be in \[0, 1\]"),
        ("biases", (), "biases, noises and scores must each name at least one"),
    ],
)
def test_refuses_comparisons_that_could_not_be_made(field: str, value: Any, rule: str) -> None:
    with pytest.raises(InvalidInputError, match=rule):
        replace(SimulateConfig(), **{field: value})
