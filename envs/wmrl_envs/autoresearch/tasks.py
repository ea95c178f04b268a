"""Task: a folder with data, a metric, hidden answers and a leaderboard.

A folder holds ``task.toml``, ``description.md``, ``leaderboard.csv`` and either the data itself
(``public/`` and ``private/answers.csv``) or ``prepare.py``, whose ``table()`` returns all rows as a
data frame. In the second case the data are made once, into a cache folder.
"""

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wmrl_envs.autoresearch.leaderboard import Leaderboard, read_leaderboard
from wmrl_envs.autoresearch.metrics import Metric, metric_named
from wmrl_envs.autoresearch.prepare import prepared_folder
from wmrl_envs.autoresearch.submission import Invalid, read_predictions
from wmrl_envs.errors import InvalidInputError

Kind = Literal["classification", "regression", "ordinal", "count", "forecast"]
KINDS: tuple[Kind, ...] = ("classification", "regression", "ordinal", "count", "forecast")

Rows = Literal["all", "reward", "report"]
"""Which hidden rows are scored: those that may be a reward, those kept for reports, or all."""

ROWS: tuple[Rows, ...] = ("all", "reward", "report")
_COLUMN_OF_ROWS = {"all": "score", "reward": "reward", "report": "report"}
BUNDLED = Path(__file__).parent / "bundled"
_PUBLIC_FILES = ("train.csv", "test.csv", "sample_submission.csv")


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """What a valid submission is worth."""

    score: float
    """In the metric's units."""

    position: float
    """On the leaderboard, in [0, 1]; 1 is the top."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task, ready to be shown and graded."""

    name: str
    title: str
    kind: Kind
    target: str
    metric: Metric
    description: str
    public: Path
    answers: Mapping[str, str]
    """True value by row id, in the file's order; never shown to an agent."""

    leaderboard_file: Path

    @cached_property
    def boards(self) -> dict[Rows, Leaderboard]:
        """The leaderboard over each set of hidden rows."""
        better = self.metric.higher_is_better
        return {
            rows: read_leaderboard(
                self.leaderboard_file, higher_is_better=better, column=_COLUMN_OF_ROWS[rows]
            )
            for rows in ROWS
        }

    @property
    def columns(self) -> tuple[str, str]:
        """Names of the columns of a submission."""
        return "id", self.target

    def score(self, submission: bytes, *, rows: Rows = "all") -> float | Invalid:
        """Return the metric over the asked-for hidden rows, or why there is none."""
        given = read_predictions(
            submission, answers=self.answers, columns=self.columns, metric=self.metric
        )
        if isinstance(given, Invalid):
            return given
        chosen = rows_mask(len(self.answers), rows)
        return self.metric.evaluate(self._truth[chosen], given[chosen])

    def grade(self, submission: bytes, *, rows: Rows = "all") -> Grade | Invalid:
        """Return score and leaderboard position over the asked-for hidden rows."""
        score = self.score(submission, rows=rows)
        if isinstance(score, Invalid):
            return score
        return Grade(score=score, position=self.boards[rows].position(score))

    @cached_property
    def _truth(self) -> np.ndarray:
        texts = list(self.answers.values())
        return np.array(texts, dtype=float) if self.metric.numeric else np.array(texts)


def rows_mask(count: int, rows: Rows) -> np.ndarray:
    """Return which hidden rows belong to a set: every second one is kept from the reward."""
    if rows not in ROWS:
        raise InvalidInputError(f"rows must be one of {', '.join(ROWS)}, got {rows!r}")
    even = np.arange(count) % 2 == 0
    return {"all": np.ones(count, dtype=bool), "reward": even, "report": ~even}[rows]


def task_names() -> tuple[str, ...]:
    """Return the names of the bundled tasks."""
    return tuple(sorted(path.parent.name for path in BUNDLED.glob("*/task.toml")))


def load_task(task: str | Path, *, need_leaderboard: bool = True) -> Task:
    """Return a bundled task by name, or one of your own by folder.

    Args:
        task: A bundled task's name or a folder.
        need_leaderboard: Whether a missing leaderboard is an error; false while one is being made.

    Raises:
        InvalidInputError: If there is no such task, or its folder breaks a rule.
        DependencyNotInstalledError: If a package its data come from is missing.
    """
    folder = BUNDLED / task if isinstance(task, str) and task in task_names() else Path(task)
    if not (folder / "task.toml").is_file():
        raise InvalidInputError(
            f"task must be a folder with task.toml or one of {', '.join(task_names())}, got "
            f"{str(task)!r}"
        )
    about = _read_about(folder / "task.toml")
    description = _required(folder / "description.md").read_text(encoding="utf-8").strip()
    data = folder if (folder / "public").is_dir() else prepared_folder(folder, about)
    public = data / "public"
    for name in _PUBLIC_FILES:
        _required(public / name)
    made = Task(
        name=folder.resolve().name,
        title=about["title"],
        kind=about["kind"],
        target=about["target"],
        metric=metric_named(about["metric"]),
        description=description,
        public=public,
        answers=_read_answers(_required(data / "private" / "answers.csv"), about["target"]),
        leaderboard_file=folder / "leaderboard.csv",
    )
    _check(made)
    if need_leaderboard:
        _ = made.boards
    return made


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"task.toml must be valid TOML, got {error} in {path}") from error
    for key in ("title", "kind", "target", "metric"):
        if not isinstance(about.get(key), str):
            raise InvalidInputError(f"task.toml must set {key} to a string, got none in {path}")
    if about["kind"] not in KINDS:
        raise InvalidInputError(
            f"kind must be one of {', '.join(KINDS)}, got {about['kind']!r} in {path}"
        )
    metric_named(about["metric"])
    return about


def _required(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInputError(f"{path.name} must be in the task folder, got none at {path}")
    return path


def _read_answers(path: Path, target: str) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames is None or {"id", target} - set(reader.fieldnames):
            raise InvalidInputError(f"answers.csv must have columns id,{target}, got {path}")
        answers = {row["id"]: row[target] for row in reader}
    if not answers:
        raise InvalidInputError(f"answers.csv must have rows, got none in {path}")
    return answers


def _check(task: Task) -> None:
    """Check that the sample submission would be accepted and that no answer is shown."""
    sample = (task.public / "sample_submission.csv").read_bytes()
    given = read_predictions(sample, answers=task.answers, columns=task.columns, metric=task.metric)
    if isinstance(given, Invalid):
        raise InvalidInputError(f"sample_submission.csv must be a valid submission: {given.reason}")
    with (task.public / "test.csv").open(newline="", encoding="utf-8") as file:
        shown = next(csv.reader(file), [])
    if task.target in shown:
        raise InvalidInputError(f"test.csv must not hold the target, got column {task.target!r}")
