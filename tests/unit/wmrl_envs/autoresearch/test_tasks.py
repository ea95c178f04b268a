"""Checks of ``wmrl_envs.autoresearch.tasks`` and of the bundled tasks."""

import csv
import shutil
from pathlib import Path

import pytest

from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.tasks import BUNDLED, load_task, rows_mask, task_names
from wmrl_envs.errors import InvalidInputError

TOML = 'title = "Twice"\nkind = "regression"\ntarget = "y"\nmetric = "rmse"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "task.toml": TOML,
        "description.md": "Predict y.",
        "leaderboard.csv": "rank,score,reward,report\n1,0.5,0.5,0.5\n2,1.5,1.5,1.5\n",
        "public/train.csv": "id,x,y\n0,1,2\n1,2,4\n",
        "public/test.csv": "id,x\n2,3\n3,4\n",
        "public/sample_submission.csv": "id,y\n2,0\n3,0\n",
        "private/answers.csv": "id,y\n2,6\n3,8\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_folder_is_a_task_without_any_code(folder: Path) -> None:
    task = load_task(folder)

    grade = task.grade(b"id,y\n2,7\n3,9\n")

    assert not isinstance(grade, Invalid)
    assert (grade.score, grade.position) == (1.0, 0.5)  # off by 1; place 2 of 2: (2 - 2 + 1) / 2


@pytest.mark.parametrize(
    "name",
    ["description.md", "public/train.csv", "public/sample_submission.csv", "private/answers.csv"],
)
def test_a_missing_file_is_named(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(InvalidInputError, match=f"{Path(name).name} must be in the task folder"):
        load_task(folder)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("task.toml", "title = ", "must be valid TOML"),
        ("task.toml", TOML.replace("title", "titel"), "must set title"),
        ("task.toml", TOML.replace("regression", "clustering"), "kind must be one of"),
        ("task.toml", TOML.replace("rmse", "bleu"), "metric must be one of"),
        ("leaderboard.csv", "rank,score\n1,best\n", "finite numbers"),
        ("leaderboard.csv", "rank,score\n1,0.5\n", "column 'reward'"),
        ("private/answers.csv", "id,z\n2,6\n", "columns id,y"),
        ("private/answers.csv", "id,y\n", "must have rows"),
        ("public/sample_submission.csv", "id,y\n2,0\n", "sample_submission.csv must be a valid"),
        ("public/test.csv", "id,x,y\n2,3,6\n3,4,8\n", "must not hold the target"),
    ],
)
def test_a_broken_file_is_one_line_with_the_rule(
    name: str, text: str, reason: str, folder: Path
) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=reason) as caught:
        load_task(folder)
    assert "\n" not in str(caught.value)


def test_an_unknown_task_lists_the_known() -> None:
    with pytest.raises(InvalidInputError, match="penguins"):
        load_task("no_such_task")


def test_no_row_is_both_for_reward_and_for_report() -> None:
    reward, report = rows_mask(5, "reward"), rows_mask(5, "report")
    assert reward.tolist() == [True, False, True, False, True]
    assert not (reward & report).any()
    assert (reward | report).all()


def test_at_least_twelve_tasks_of_every_kind_are_bundled() -> None:
    kinds = {load_task(name, need_leaderboard=False).kind for name in task_names()}
    assert len(task_names()) >= 12
    assert kinds == {"classification", "regression", "ordinal", "count", "forecast"}


@pytest.mark.parametrize("name", task_names())
def test_a_bundled_task_is_whole(name: str) -> None:
    pytest.importorskip("pandas", reason="the autoresearch extra is not installed")
    task = load_task(name)

    with (BUNDLED / name / "leaderboard.csv").open(encoding="utf-8") as file:
        entries = list(csv.DictReader(file))

    assert 60 <= len(entries) <= 100
    assert len(set(task.boards["all"].scores)) > 30
    scores = [float(entry["score"]) for entry in entries]
    assert scores == sorted(scores, reverse=task.metric.higher_is_better)


def test_prepared_data_are_refused_when_a_package_changed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WMRL_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "penguins"
    shutil.copytree(BUNDLED / "penguins", copy)
    script = (copy / "prepare.py").read_text(encoding="utf-8")
    (copy / "prepare.py").write_text(
        script.replace("return data.rename", 'data["year"] += 1\n    return data.rename'),
        encoding="utf-8",
    )
    with pytest.raises(InvalidInputError, match="must have digest"):
        load_task(copy)
