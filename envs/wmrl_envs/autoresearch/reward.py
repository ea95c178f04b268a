"""Reward: what an execution is worth, and what the agent is told about it."""

from dataclasses import dataclass
from typing import Literal

from wmrl_envs.autoresearch.sandbox import Execution
from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.tasks import Grade, Rows, Task
from wmrl_envs.errors import InvalidInputError

Scale = Literal["position", "ladder"]
SCALES: tuple[Scale, ...] = ("position", "ladder")

_LADDER = {"malformed": 0.0, "failed": 0.1, "missing": 0.2, "valid": 0.5}


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What came of one action."""

    reward: float
    """In [0, 1]."""

    position: float
    """Leaderboard position in [0, 1]; 0 without a valid submission."""

    score: float | None = None
    """In the metric's units, None without a valid submission."""

    problem: str | None = None
    """Why there is no score; None if there is one."""

    execution: Execution | None = None
    """The run behind it; None where the action was refused before any."""

    @property
    def is_valid(self) -> bool:
        """Whether there is a valid submission."""
        return self.score is not None


def refuse(problem: str) -> Verdict:
    """Return the verdict on an action that is not run at all: malformed."""
    return Verdict(reward=_LADDER["malformed"], position=0.0, problem=problem)


def judge(execution: Execution, task: Task, *, scale: Scale, rows: Rows) -> Verdict:
    """Return the verdict on a program that ran.

    ``position`` is worth the leaderboard position of a valid submission, else 0. ``ladder`` is
    worth 0.1 for a program that fails, 0.2 for one that writes no valid submission, and
    0.5 + 0.5 x position for one that does.
    """
    if scale not in SCALES:
        raise InvalidInputError(f"reward must be one of {', '.join(SCALES)}, got {scale!r}")
    problem, grade = _grade(execution, task, rows)
    if grade is not None:
        base = _LADDER["valid"] if scale == "ladder" else 0.0
        return Verdict(
            reward=base + (1.0 - base) * grade.position,
            position=grade.position,
            score=grade.score,
            execution=execution,
        )
    step = "missing" if execution.status == "ok" else "failed"
    if execution.error_type in ("SyntaxError", "IndentationError", "TabError"):
        step = "malformed"
    reward = _LADDER[step] if scale == "ladder" else 0.0
    return Verdict(reward=reward, position=0.0, problem=problem, execution=execution)


def _grade(execution: Execution, task: Task, rows: Rows) -> tuple[str | None, Grade | None]:
    if execution.status != "ok":
        where = f" at line {execution.line}" if execution.line else ""
        message = f": {execution.message}" if execution.message else ""
        return f"{execution.error_type}{message}{where}", None
    if execution.collected is None:
        reason = execution.collect_problem
        return f"submission.csv {reason or 'must be written, found none'}", None
    graded = task.grade(execution.collected, rows=rows)
    if isinstance(graded, Invalid):
        return f"submission.csv: {graded.reason}", None
    return None, graded


def feedback(verdict: Verdict, *, longest: int) -> str:
    """Return what the agent reads next: outcome, then the program's output, cut in the middle."""
    if verdict.is_valid:
        head = f"Score {verdict.score:.6g}, better than {verdict.position:.0%} of the leaderboard."
    else:
        head = f"No score. {verdict.problem}"
    run = verdict.execution
    if run is None:
        return truncate(head, longest)
    parts = [head, f"Run: {run.status}, {run.seconds:.1f} s."]
    parts += [f"Output:\n{run.stdout.strip()}"] if run.stdout.strip() else []
    parts += [f"Errors:\n{run.stderr.strip()}"] if run.stderr.strip() else []
    return truncate("\n".join(parts), longest)


def truncate(text: str, longest: int) -> str:
    """Return the text with its middle left out where it is longer than ``longest`` characters."""
    if len(text) <= longest:
        return text
    mark = "\n[...]\n"
    room = max(0, longest - len(mark))
    return text[: room - room // 2] + mark + text[len(text) - room // 2 :]
