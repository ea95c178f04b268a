"""Making of a leaderboard: every template pipeline run in the sandbox and measured on the hidden rows."""

import csv
import io
import logging
from dataclasses import dataclass

from wmrl_envs.autoresearch.pipelines import templates
from wmrl_envs.autoresearch.sandbox import Limits, Program, Sandbox
from wmrl_envs.autoresearch.scaffold import render
from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.tasks import ROWS, Rows, Task
from wmrl_envs.errors import InvalidInputError

_LOG = logging.getLogger(__name__)
_FEWEST = 20
_LIMITS = Limits(wall_s=60.0, cpu_s=20.0, memory_bytes=1 << 30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One pipeline's scores over each set of hidden rows."""

    pipeline: str
    scores: dict[Rows, float]


def measure_templates(task: Task, sandbox: Sandbox) -> list[Entry]:
    """Return the entries of a board, best first; pipelines that do not run are left out, logged.

    Raises:
        InvalidInputError: If too few run for a board.
    """
    pipelines = templates(task)
    programs = [
        Program(code=render(text, task), public=task.public, limits=_LIMITS) for text in pipelines
    ]
    entries = []
    for text, made in zip(pipelines, sandbox.run_many(programs), strict=True):
        if made is None or made.collected is None:
            why = "missing" if made is None else made.message or made.status
            _LOG.warning("%s: %s is left out: %s", task.name, text, why)
            continue
        scores = {rows: task.score(made.collected, rows=rows) for rows in ROWS}
        valid = {rows: score for rows, score in scores.items() if not isinstance(score, Invalid)}
        if len(valid) == len(scores):
            entries.append(Entry(pipeline=text, scores=valid))
    if len(entries) < _FEWEST:
        raise InvalidInputError(
            f"leaderboard must have at least {_FEWEST} pipelines that run, got {len(entries)}"
        )
    return sorted(
        entries, key=lambda entry: entry.scores["all"], reverse=task.metric.higher_is_better
    )


def as_csv(entries: list[Entry]) -> str:
    """Return the board as the text of ``leaderboard.csv``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank", "score", "reward", "report", "pipeline"])
    for rank, entry in enumerate(entries, start=1):
        scores = [f"{entry.scores[rows]:.6g}" for rows in ROWS]
        writer.writerow([rank, *scores, entry.pipeline])
    return text.getvalue()
