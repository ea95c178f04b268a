"""Checks of ``wmrl_embodied.execution.local``: what becomes of jobs whose worker dies or hangs."""

import os
import signal
import time
from pathlib import Path

import pytest

from wmrl_embodied.execution.local import LocalPool, PoolConfig
from wmrl_envs.errors import InfrastructureError, InvalidInputError


def _square(number: int) -> int:
    return number * number


def _die_once(marker: Path) -> str:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def _hang(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _lose(_: int) -> int:
    raise InfrastructureError("the simulator lost its state")


def _refuse(_: int) -> int:
    raise InvalidInputError("value must be right, got wrong")


def test_answers_come_in_the_order_of_the_jobs() -> None:
    with LocalPool(_square, PoolConfig(workers=2)) as pool:
        assert [record.answer for record in pool.map([3, 1, 2])] == [9, 1, 4]


def test_a_killed_worker_is_replaced_and_its_job_tried_again(tmp_path: Path) -> None:
    with LocalPool(_die_once, PoolConfig(workers=1)) as pool:
        (record,) = pool.map([tmp_path / "died"])
    assert record.answer == "survived"
    assert record.attempts == 2


def test_a_hung_job_is_missing_and_the_others_are_not() -> None:
    config = PoolConfig(workers=2, timeout_s=3.0, attempts=1)
    with LocalPool(_hang, config) as pool:
        hung, quick = pool.map([60.0, 0.0])
    assert hung.answer is None
    assert "Timeout" in str(hung.failure)
    assert quick.answer == 0.0


def test_a_failure_of_infrastructure_is_missing_after_its_attempts() -> None:
    with LocalPool(_lose, PoolConfig(workers=1, attempts=2)) as pool:
        (record,) = pool.map([0])
    assert (record.answer, record.attempts) == (None, 2)
    assert "lost its state" in str(record.failure)


def test_a_users_error_is_raised_not_retried() -> None:
    with (
        LocalPool(_refuse, PoolConfig(workers=1)) as pool,
        pytest.raises(InvalidInputError, match="got wrong"),
    ):
        pool.map([0])


def test_refuses_a_pool_without_workers() -> None:
    with pytest.raises(InvalidInputError, match="workers=0"):
        PoolConfig(workers=0)
