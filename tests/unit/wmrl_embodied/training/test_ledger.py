"""Checks of ``wmrl_embodied.training.ledger``."""

import time

import pytest

from wmrl_embodied.execution.contract import Cost
from wmrl_embodied.training.ledger import Ledger


def _spent() -> Ledger:
    ledger = Ledger(proposed=100)
    ledger.charge(Cost(executions=10, steps=50, cpu_seconds=20.0, missing=2, retries=3))
    ledger.parts_s |= {"generation": 1.0, "world_model": 2.0, "estimation": 3.0, "update": 4.0}
    return ledger


def test_the_total_holds_anchors_and_world_model() -> None:
    assert _spent().total_s == pytest.approx(20.0 + 1.0 + 2.0 + 3.0 + 4.0)


def test_executing_everything_needs_neither_world_model_nor_estimation() -> None:
    # 100 proposals at 20/10 = 2 s each, plus generation 1 and update 4.
    assert _spent().executing_everything_s == pytest.approx(205.0)


def test_missing_executions_are_asked_for_but_not_executed() -> None:
    ledger = _spent()
    assert (ledger.asked, ledger.executions, ledger.missing) == (12, 10, 2)


def _spin_and_fail(ledger: Ledger) -> None:
    with ledger.measure("update"):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        raise KeyError


def test_measures_cpu_time_of_the_part_even_when_it_fails() -> None:
    ledger = Ledger()
    with pytest.raises(KeyError):
        _spin_and_fail(ledger)
    assert 0.05 <= ledger.parts_s["update"] < 1.0


def test_survives_a_checkpoint() -> None:
    assert Ledger.from_json(_spent().to_json()) == _spent()
