"""Checks of ``wmrl_envs.mledojo.layout`` and ``metric_files`` on a competition in MLE-Dojo's layout."""

import sys
from pathlib import Path

import pytest

from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.tasks import Grade
from wmrl_envs.errors import DependencyNotInstalledError, InvalidInputError
from wmrl_envs.mledojo.layout import load_competition
from wmrl_envs.mledojo.metric_files import load_metric

pytest.importorskip("pandas", reason="the autoresearch extra is not installed")

METRIC = """
from typing import Any

import pandas as pd
from mledojo.metrics.base import CompetitionMetrics, InvalidSubmissionError


class WellDepthMetrics(CompetitionMetrics):
    def __init__(self, value: str = "depth", higher_is_better: bool = False):
        super().__init__(higher_is_better)
        self.value = value

    def evaluate(self, y_true: pd.DataFrame, y_pred: pd.DataFrame) -> float:
        y_true["id"] = y_true["id"].astype(str)  # changes what it is given
        return (y_true[self.value] - y_pred[self.value]).abs().mean()

    def validate_submission(self, submission: Any, ground_truth: Any) -> str:
        if list(submission.columns) != list(ground_truth.columns):
            raise InvalidSubmissionError("columns must be id, depth")
        if len(submission) != len(ground_truth):
            raise InvalidSubmissionError("wrong number of rows")
        return "fine"
"""
FILES = {
    "data/public/description.txt": "How deep is each well?",
    "data/public/sample_submission.csv": "id,depth\n1,0\n2,0\n",
    "data/public/train.csv": "id,x,depth\n0,1,5\n",
    "data/private/test_answer.csv": "id,depth\n1,10\n2,20\n",
    "data/private/private_leaderboard.csv": "rank,score\n1,1.0\n2,2.0\n3,2.0\n4,8.0\n",
    "data/private/public_leaderboard.csv": "rank,score\n1,0.5\n2,3.0\n",
    "utils/metric.py": METRIC,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "wells" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_human_rank_is_exact_with_ties_and_lower_is_better(root: Path) -> None:
    # Error 2 on each row. Private board: place 2 of 4, (4 - 2 + 1) / 4; public: 2 of 2, 1/2.
    graded = load_competition(root, "wells").grade(b"id,depth\n1,12\n2,18\n")
    assert graded == Grade(score=2.0, position=(0.75 + 0.5) / 2)


def test_below_every_entry_is_zero(root: Path) -> None:
    graded = load_competition(root, "wells").grade(b"id,depth\n1,100\n2,200\n")
    assert isinstance(graded, Grade)
    assert graded.position == 0.0


@pytest.mark.parametrize(("missing", "position"), [("public", 0.75), ("private", 0.5)])
def test_a_missing_board_is_left_out_of_the_mean(missing: str, position: float, root: Path) -> None:
    (root / "wells" / "data" / "private" / f"{missing}_leaderboard.csv").unlink()
    graded = load_competition(root, "wells").grade(b"id,depth\n1,12\n2,18\n")
    assert graded == Grade(score=2.0, position=position)


def test_a_competition_without_boards_is_an_error(root: Path) -> None:
    for kind in ("public", "private"):
        (root / "wells" / "data" / "private" / f"{kind}_leaderboard.csv").unlink()
    with pytest.raises(InvalidInputError, match="leaderboards must be at least one"):
        load_competition(root, "wells")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"id,width\n1,12\n2,18\n", "InvalidSubmissionError: columns must be id, depth"),
        (b"id,depth\n1,12\n", "InvalidSubmissionError: wrong number of rows"),
        (b"id,depth\n1,10\n2,\n", "column 'depth' must have no empty cells"),
        (b"id,depth\n1,10\n2,nan\n", "column 'depth' must have no empty cells"),
        (b"id,depth\n1,10\n2,deep\n", "TypeError"),
        (b"", "must be a CSV file"),
        (b"\x80\x04\x95pickle", "must be a CSV file|InvalidSubmissionError"),
    ],
)
def test_an_invalid_submission_has_no_score(data: bytes, reason: str, root: Path) -> None:
    graded = load_competition(root, "wells").grade(data)
    assert isinstance(graded, Invalid)
    assert any(part in graded.reason for part in reason.split("|")), graded.reason


def test_metric_files_load_without_the_package_and_leave_no_trace(root: Path) -> None:
    finders = list(sys.meta_path)
    metric = load_metric(root / "wells" / "utils" / "metric.py")
    assert metric.higher_is_better is False
    assert not [name for name in sys.modules if name.split(".")[0] == "mledojo"]
    assert sys.meta_path == finders


def test_a_metric_that_needs_a_missing_package_says_so(tmp_path: Path) -> None:
    path = tmp_path / "metric.py"
    path.write_text("import no_such_package\n", encoding="utf-8")
    with pytest.raises(DependencyNotInstalledError, match="pip install no_such_package"):
        load_metric(path)


def test_a_file_without_a_metric_class_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "metric.py"
    path.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="must define one class derived from"):
        load_metric(path)


@pytest.mark.parametrize(
    "name", ["data/public/description.txt", "data/public/sample_submission.csv",
             "data/private/test_answer.csv"],
)  # fmt: skip
def test_a_missing_file_is_named(name: str, root: Path) -> None:
    (root / "wells" / name).unlink()
    with pytest.raises(InvalidInputError, match=Path(name).name):
        load_competition(root, "wells")


def test_an_unknown_competition_lists_the_known(root: Path) -> None:
    with pytest.raises(InvalidInputError, match="must be one of wells"):
        load_competition(root, "lakes")


def test_no_metric_file_names_the_places(root: Path) -> None:
    (root / "wells" / "utils" / "metric.py").unlink()
    with pytest.raises(InvalidInputError, match="metric file must be at one of"):
        load_competition(root, "wells")
