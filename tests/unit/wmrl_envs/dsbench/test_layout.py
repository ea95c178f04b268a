"""Checks of ``wmrl_envs.dsbench.layout`` on a task in DSBench's layout."""

from pathlib import Path

import pytest

from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.dsbench.layout import gap, load_modelling_task, relative_performance_gap
from wmrl_envs.errors import InvalidInputError

pytest.importorskip("pandas", reason="the autoresearch extra is not installed")

METRIC = """
import argparse, os
import pandas as pd
parser = argparse.ArgumentParser()
for name in ("path", "name", "answer_file", "predict_file"):
    parser.add_argument(f"--{name}", required=True)
args = parser.parse_args()
answers, given = pd.read_csv(args.answer_file), pd.read_csv(args.predict_file)
error = (answers["depth"] - given["depth"]).abs().mean()
with open(os.path.join(args.path, args.name, "result.txt"), "w") as file:
    file.write(str(error))
"""
FILES = {
    "data/task/wells.txt": "How deep is each well?",
    "data/data_resplit/wells/train.csv": "id,x,depth\n0,1,5\n",
    "data/data_resplit/wells/test.csv": "id,x\n1,2\n2,4\n",
    "data/data_resplit/wells/sample_submission.csv": "id,depth\n1,0\n2,0\n",
    "data/answers/wells/test_answer.csv": "id,depth\n1,10\n2,20\n",
    "evaluation/wells_eval.py": METRIC,
    "save_performance/baseline/wells/result.txt": "9.0",
    "save_performance/GT/wells/result.txt": "1.0",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("performance", "baseline", "best", "closed"),
    [
        (0.7, 0.5, 0.9, 0.5),  # (0.7 - 0.5) / (0.9 - 0.5)
        (3.0, 9.0, 1.0, 0.75),  # lower is better: (3 - 9) / (1 - 9)
        (0.4, 0.5, 0.9, 0.0),  # below the baseline counts 0, not less
        (1.1, 0.5, 0.9, 1.5),  # beyond the best known: not cut at 1
        (None, 0.5, 0.9, 0.0),
        (float("nan"), 0.5, 0.9, 0.0),
    ],
)
def test_the_gap_matches_values_worked_by_hand(
    performance: float | None, baseline: float, best: float, closed: float
) -> None:
    assert gap(performance, baseline=baseline, best=best) == pytest.approx(closed)


def test_a_task_without_a_score_counts_zero_in_the_mean() -> None:
    references = {"a": (0.5, 0.9), "b": (9.0, 1.0), "c": (0.0, 1.0), "d": (0.0, 1.0)}
    performances = {"a": 1.1, "b": 3.0, "c": None}
    # Gaps 1.5, 0.75, none, none: a sum of 2.25 over four tasks.
    assert relative_performance_gap(performances, references) == pytest.approx(0.5625)


def test_a_baseline_that_is_the_best_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="best must differ from baseline"):
        gap(0.5, baseline=0.9, best=0.9)


def test_a_submission_is_measured_by_the_projects_script(root: Path) -> None:
    task = load_modelling_task(root, "wells")
    score = task.score(b"id,depth\n1,13\n2,17\n")
    assert isinstance(score, float)
    assert score == 3.0
    assert task.gap(score) == 0.75


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"id,depth\n1,13\n", "rows must be 2, got 1"),
        (b"id,depth\n1,10\n2,\n", "column 'depth' must have no empty cells"),
        (b"id,width\n1,13\n2,17\n", "the metric refuses it: KeyError: 'depth'"),
        (b"", "must be a CSV file"),
    ],
)
def test_an_invalid_submission_has_no_score(data: bytes, reason: str, root: Path) -> None:
    score = load_modelling_task(root, "wells").score(data)
    assert isinstance(score, Invalid)
    assert reason in score.reason


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_missing_file_is_named(name: str, root: Path) -> None:
    (root / name).unlink()
    with pytest.raises(InvalidInputError, match=Path(name).name):
        load_modelling_task(root, "wells")


def test_an_unknown_task_lists_the_known(root: Path) -> None:
    with pytest.raises(InvalidInputError, match="must be one of wells"):
        load_modelling_task(root, "lakes")
