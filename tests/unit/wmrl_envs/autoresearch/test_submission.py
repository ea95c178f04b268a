"""Checks of ``wmrl_envs.autoresearch.submission``."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from wmrl_envs.autoresearch.metrics import METRICS
from wmrl_envs.autoresearch.submission import Invalid, read_predictions

ANSWERS = {"7": "1.0", "8": "2.0", "9": "3.0"}


def read(data: bytes, metric: str = "rmse") -> np.ndarray | Invalid:
    return read_predictions(data, answers=ANSWERS, columns=("id", "y"), metric=METRICS[metric])


def test_rows_and_columns_may_come_in_any_order() -> None:
    np.testing.assert_array_equal(read(b"y,id\n30,9\n10,7\n20,8\n"), [10.0, 20.0, 30.0])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "columns must be id, y, got none"),
        (b"id,z\n7,1\n8,1\n9,1\n", "columns must be id, y, got id, z"),
        (b"id,y,y\n7,1,1\n8,1,1\n9,1,1\n", "columns must be id, y"),
        (b"id,y\n7,1\n8,1\n", "rows must be 3"),
        (b"id,y\n7,1\n8,1\n9\n", "rows must have 2 cells, got 1"),
        (b"id,y\n7,1\n8,1\n8,1\n", "ids must each occur once"),
        (b"id,y\n7,1\n8,1\n6,1\n", "got '6'"),
        (b"id,y\n7,1\n8,1\n9,\n", "y must be numbers, got ''"),
        (b"id,y\n7,1\n8,1\n9,nan\n", "must be finite"),
        (b"id,y\n7,1\n8,1\n9,-inf\n", "must be finite"),
        (b"\xff\xfe\x00", "CSV file in UTF-8"),
        (b'id,y\n7,"' + b"x" * 200_000, "CSV file in UTF-8"),
        (pickle.dumps({"id": 7}), "submission must be|columns must be"),
    ],
)
def test_an_invalid_submission_says_what_is_wrong(data: bytes, reason: str) -> None:
    given = read(data)
    assert isinstance(given, Invalid)
    assert re.search(reason, given.reason)


def test_a_negative_count_is_refused_where_it_means_nothing() -> None:
    given = read(b"id,y\n7,1\n8,-1\n9,1\n", "poisson_deviance")
    assert given == Invalid(reason="y must be at least 0 for poisson_deviance, got -1")


class _Planted:
    """Touches a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return open, (self.path, "w")


def test_a_pickled_submission_is_never_opened(tmp_path: Path) -> None:
    data = pickle.dumps(_Planted(str(tmp_path / "planted")))
    assert isinstance(read(data), Invalid)
    assert not (tmp_path / "planted").exists()
