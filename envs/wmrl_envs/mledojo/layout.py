"""Competition: what MLE-Dojo keeps on disk of one, and how a submission to it is graded.

``<root>/<competition>/data/public/`` is shown to agents: ``description.txt``,
``sample_submission.csv`` and the data. ``data/private/`` holds ``test_answer.csv`` and the boards
``private_leaderboard.csv`` and ``public_leaderboard.csv`` with columns ``rank,score``.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from wmrl_envs.autoresearch.leaderboard import Leaderboard, human_rank, read_leaderboard
from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.tables import hole, read_table
from wmrl_envs.autoresearch.tasks import Grade
from wmrl_envs.errors import InvalidInputError
from wmrl_envs.mledojo.metric_files import LoadedMetric, load_metric

BOARDS = ("private_leaderboard.csv", "public_leaderboard.csv")
_METRIC_FILES = ("utils/metric.py", "metric.py")


@dataclass(frozen=True, kw_only=True)
class Competition:
    """One competition."""

    name: str
    description: str
    public: Path
    private: Path
    metric: LoadedMetric

    @cached_property
    def boards(self) -> tuple[Leaderboard, ...]:
        """The boards that are there; a competition may lack one."""
        return tuple(
            read_leaderboard(
                self.private / name, higher_is_better=bool(self.metric.higher_is_better)
            )
            for name in BOARDS
            if (self.private / name).is_file()
        )

    def score(self, submission: bytes) -> float | Invalid:
        """Return the metric's value for a submission, or why it is not valid."""
        truth = read_table((self.private / "test_answer.csv").read_bytes())
        given = read_table(submission)
        if isinstance(truth, Invalid):
            raise InvalidInputError(f"test_answer.csv must be a table: {truth.reason}")
        if isinstance(given, Invalid):
            return given
        problem = hole(given, truth)
        if problem:
            return Invalid(reason=problem)
        try:
            # Metric files change the frames they are given.
            checked = self.metric.validate_submission(given.copy(), truth.copy())
            if isinstance(checked, tuple) and checked and checked[0] is False:
                return Invalid(reason=str(checked[-1])[:300])
            value = float(self.metric.evaluate(truth.copy(), given.copy()))
        except Exception as error:  # noqa: BLE001  (a metric file of anyone's may raise anything)
            return Invalid(reason=f"{type(error).__name__}: {str(error)[:300]}")
        if math.isnan(value):
            return Invalid(reason="the metric is NaN for this submission")
        return value

    def grade(self, submission: bytes) -> Grade | Invalid:
        """Return score and HumanRank of a submission, or why it is not valid."""
        score = self.score(submission)
        if isinstance(score, Invalid):
            return score
        return Grade(score=score, position=human_rank(score, self.boards))


def competitions(root: Path) -> tuple[str, ...]:
    """Return the names of the competitions under a data root."""
    return tuple(
        sorted(path.parents[1].name for path in root.glob("*/data/public") if path.is_dir())
    )


def load_competition(root: Path, name: str, *, metric_file: Path | None = None) -> Competition:
    """Return a competition.

    Args:
        root: The data root.
        name: The competition's folder.
        metric_file: Its metric; None looks in the competition's own folder.

    Raises:
        InvalidInputError: If a file is missing or wrong.
    """
    names = competitions(root)
    if name not in names:
        shown = ", ".join(names[:20]) or f"none under {root}; prepare the data there"
        raise InvalidInputError(f"competition must be one of {shown}, got {name!r}")
    folder = root / name
    public, private = folder / "data" / "public", folder / "data" / "private"
    for path in (public / "description.txt", public / "sample_submission.csv",
                 private / "test_answer.csv"):  # fmt: skip
        if not path.is_file():
            raise InvalidInputError(f"{path.name} must be in the competition, got none at {path}")
    candidates = [metric_file] if metric_file else [folder / place for place in _METRIC_FILES]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        places = ", ".join(str(path) for path in candidates)
        raise InvalidInputError(
            f"metric file must be at one of {places}, got none; pass metric_file"
        )
    made = Competition(
        name=name,
        description=(public / "description.txt").read_text(encoding="utf-8"),
        public=public.resolve(),
        private=private.resolve(),
        metric=load_metric(found),
    )
    if not made.boards:
        raise InvalidInputError(f"leaderboards must be at least one, got none in {private}")
    return made
