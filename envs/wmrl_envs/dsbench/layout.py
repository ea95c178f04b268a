"""Data modelling tasks of DSBench as its project lays them out, and their score.

Under the root (the project's ``data_modeling`` folder):
    ``data/task/<name>.txt``                        the description
    ``data/data_resplit/<name>/``                   ``train.csv``, ``test.csv``,
                                                    ``sample_submission.csv``: shown to agents
    ``data/answers/<name>/test_answer.csv``         the answers
    ``evaluation/<name>_eval.py``                   the metric, a script
    ``save_performance/{baseline,GT}/<name>/result.txt``   the reference scores

Notation of the relative performance gap (RPG):
    p   the submission's score in the task's metric
    b   the baseline's score, that of a plain submission
    g   the score to match, that of the best known one
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.tables import hole, read_table
from wmrl_envs.errors import InfrastructureError, InvalidInputError

_METRIC_TIMEOUT_S = 300.0


def gap(performance: float | None, *, baseline: float, best: float) -> float:
    """Return ``max(0, (p - b) / (g - b))``, 0 without a performance; above 1 beyond the best.

    The direction of the metric needs no mention: where lower is better, g is below b.

    Raises:
        InvalidInputError: If the baseline is the best, so that there is no gap to close.

    Source:
        DSBench (2024), relative performance gap.
    """
    if baseline == best:
        raise InvalidInputError(
            f"best must differ from baseline, got {best} for both; correct the reference scores"
        )
    if performance is None or math.isnan(performance):
        return 0.0
    return max(0.0, (performance - baseline) / (best - baseline))


def relative_performance_gap(
    performances: Mapping[str, float | None], references: Mapping[str, tuple[float, float]]
) -> float:
    """Return the mean gap over every task that has a reference; a task without a score counts 0.

    Args:
        performances: Score by task; None, or no entry, where there is no valid submission.
        references: Baseline and best score by task.
    """
    if not references:
        raise InvalidInputError("references must name at least one task, got none")
    gaps = (
        gap(performances.get(name), baseline=baseline, best=best)
        for name, (baseline, best) in references.items()
    )
    return sum(gaps) / len(references)


@dataclass(frozen=True, kw_only=True)
class ModellingTask:
    """One task."""

    name: str
    description: str
    public: Path
    answers: Path
    metric: Path
    """The project's evaluation script; it is the user's and runs with the user's rights."""

    baseline: float
    best: float

    def score(self, submission: bytes) -> float | Invalid:
        """Return the metric's value for a submission, or why it is not valid.

        Raises:
            InfrastructureError: If the metric did not end in time.
        """
        given, truth = read_table(submission), read_table(self.answers.read_bytes())
        if isinstance(truth, Invalid):
            raise InvalidInputError(f"test_answer.csv must be a table: {truth.reason}")
        if isinstance(given, Invalid):
            return given
        if len(given) != len(truth):
            return Invalid(reason=f"rows must be {len(truth)}, got {len(given)}")
        problem = hole(given, truth)
        return Invalid(reason=problem) if problem else self._measure(submission)

    def _measure(self, submission: bytes) -> float | Invalid:
        with tempfile.TemporaryDirectory(prefix="wmrl-dsbench-") as folder:
            made = Path(folder) / self.name
            made.mkdir()
            (made / "submission.csv").write_bytes(submission)
            command = [sys.executable, str(self.metric), "--path", folder, "--name", self.name]
            command += ["--answer_file", str(self.answers)]
            command += ["--predict_file", str(made / "submission.csv")]
            try:
                done = subprocess.run(  # noqa: S603  (the user's own metric)
                    command, capture_output=True, text=True, timeout=_METRIC_TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise InfrastructureError(f"the metric of {self.name} did not end") from error
            if done.returncode != 0 or not (made / "result.txt").is_file():
                lines = done.stderr.strip().splitlines()
                return Invalid(reason=f"the metric refuses it: {lines[-1][:300] if lines else ''}")
            value = _read_score(made / "result.txt")
        return Invalid(reason="the metric is NaN for it") if math.isnan(value) else value

    def gap(self, score: float | None) -> float:
        """Return the share of the gap between baseline and best that a score closes."""
        return gap(score, baseline=self.baseline, best=self.best)


def _read_score(path: Path) -> float:
    """Return the number in a file of one number, which may be written as NumPy shows it."""
    text = path.read_text(encoding="utf-8").strip()
    try:
        return float(text.removeprefix("np.float64(").removesuffix(")"))
    except ValueError as error:
        raise InvalidInputError(
            f"result.txt must hold a number, got {text[:100]!r} in {path}"
        ) from error


def modelling_tasks(root: Path) -> tuple[str, ...]:
    """Return the names of the tasks under a data root."""
    folders = (root / "data" / "data_resplit").glob("*")
    return tuple(sorted(path.name for path in folders if path.is_dir()))


def load_modelling_task(root: Path, name: str) -> ModellingTask:
    """Return a task.

    Raises:
        InvalidInputError: If there is no such task or a file is missing.
    """
    names = modelling_tasks(root)
    if name not in names:
        shown = ", ".join(names[:20]) or f"none under {root / 'data' / 'data_resplit'}"
        raise InvalidInputError(f"task must be one of {shown}, got {name!r}")
    public = root / "data" / "data_resplit" / name
    text = root / "data" / "task" / f"{name}.txt"
    answers = root / "data" / "answers" / name / "test_answer.csv"
    metric = root / "evaluation" / f"{name}_eval.py"
    references = {
        kind: root / "save_performance" / kind / name / "result.txt" for kind in ("baseline", "GT")
    }
    tables = [public / f"{table}.csv" for table in ("train", "test", "sample_submission")]
    for path in (text, answers, metric, *tables, *references.values()):
        if not path.is_file():
            raise InvalidInputError(f"{path.name} must be in the data root, got none at {path}")
    made = ModellingTask(
        name=name,
        description=text.read_text(encoding="utf-8"),
        public=public.resolve(),
        answers=answers.resolve(),
        metric=metric.resolve(),
        baseline=_read_score(references["baseline"]),
        best=_read_score(references["GT"]),
    )
    made.gap(None)
    return made
