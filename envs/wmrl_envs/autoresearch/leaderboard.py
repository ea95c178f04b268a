"""Leaderboard: the scores others reached, and the position of a new one among them."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaderboard:
    """Scores of one board, in any order."""

    scores: tuple[float, ...]
    higher_is_better: bool

    def rank(self, score: float) -> int:
        """Return the place of ``score``, from 1: the first entry, best first, that it matches or beats.

        A score below every entry is placed ``len(scores) + 1``; ties take the better place.
        """
        sign = 1.0 if self.higher_is_better else -1.0
        ordered = sorted((sign * entry for entry in self.scores), reverse=True)
        for place, entry in enumerate(ordered, start=1):
            if sign * score >= entry:
                return place
        return len(ordered) + 1

    def position(self, score: float) -> float:
        """Return ``(total - rank + 1) / total``: 1 for matching the best, 0 for below the last."""
        total = len(self.scores)
        return (total - self.rank(score) + 1) / total


def read_leaderboard(path: Path, *, higher_is_better: bool, column: str = "score") -> Leaderboard:
    """Read one column of a leaderboard file.

    Raises:
        InvalidInputError: If the file or column is missing, empty, or holds what is not a number.
    """
    if not path.is_file():
        raise InvalidInputError(
            f"leaderboard must be a file, got none at {path}; make one with `wmrl tasks leaderboard`"
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    if not rows or column not in rows[0]:
        found = ", ".join(rows[0]) if rows else "no rows"
        raise InvalidInputError(f"leaderboard must have a column {column!r}, got {found} in {path}")
    scores = tuple(_number(row[column], path, line) for line, row in enumerate(rows, start=2))
    return Leaderboard(scores=scores, higher_is_better=higher_is_better)


def _number(text: str | None, path: Path, line: int) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInputError(
            f"leaderboard scores must be finite numbers, got {text!r} at {path}:{line}; correct or "
            "remove the row"
        )
    return value


def human_rank(score: float, boards: Sequence[Leaderboard]) -> float:
    """Return the mean position over the boards that are present.

    Raises:
        InvalidInputError: If there is no board at all.

    Source:
        MLE-Dojo's HumanRank score.
    """
    if not boards:
        raise InvalidInputError("leaderboards must be at least one, got none; add one to private/")
    return sum(board.position(score) for board in boards) / len(boards)
