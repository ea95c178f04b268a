"""Sinks: where the metrics of a run go, one flat dict a step."""

import json
import math
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

Metrics = dict[str, float | int | None]
"""One logged step: ``step`` and every metric, None where it was not a number."""

METRICS: dict[str, str] = {
    "score/real": "mean real score of the rollouts executed at this step",
    "score/predicted": "mean predicted score of all rollouts proposed at this step",
    "score/predicted_on_executed": "mean predicted score of the rollouts that were executed",
    "evaluation/held_out": "real success of the mean plan on held-out starts, where asked for",
    "world_model/std": "mean standard deviation of the predicted score",
    "update/loss": "clipped policy loss of the last epoch",
    "update/grad_norm": "norm of the gradient before clipping, last epoch",
    "cost/proposed": "rollouts proposed so far",
    "cost/asked": "real executions asked for so far",
    "cost/executions": "real executions that ended with a score so far",
    "cost/missing": "real executions that ended without one so far",
    "cost/retries": "attempts repeated after an infrastructure failure so far",
    "cost/steps": "simulator control steps so far",
    "cost/execution_s": "CPU seconds of real executions so far",
    "cost/generation_s": "CPU seconds spent proposing so far",
    "cost/world_model_s": "CPU seconds of world-model prediction and fitting so far",
    "cost/estimation_s": "CPU seconds of draws, advantages and monitors so far",
    "cost/update_s": "CPU seconds of policy updates so far",
    "cost/total_s": "CPU seconds of everything that trained so far",
}
"""Names every run logs; the estimator adds its own, see ``estimators.diagnostics``."""


class JsonLinesSink:
    """Appends one JSON object a step; on resume, lines past the checkpoint are dropped."""

    def __init__(self, path: Path, *, resume_at: int = 0) -> None:
        kept = []
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if 0 <= _step_of(line) <= resume_at]
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")
        self._file.writelines(f"{line}\n" for line in kept)
        self._file.flush()

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Append the metrics; NaN becomes null, which JSON knows."""
        clean = {name: None if math.isnan(value) else value for name, value in metrics.items()}
        self._file.write(json.dumps({"step": step, **clean}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoardSink:
    """Writes scalars for TensorBoard."""

    def __init__(self, folder: Path, *, resume_at: int = 0) -> None:
        self._writer = SummaryWriter(str(folder), purge_step=resume_at + 1)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write every metric as a scalar."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()


class TerminalSink:
    """A progress bar with real and predicted score, executions and time left."""

    def __init__(self, console: Console, *, total: int, start: int = 0) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("training", total=total, completed=start, shown="")
        self._progress.start()

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Advance the bar."""
        shown = (
            f"real {metrics['score/real']:.2f}  predicted {metrics['score/predicted']:.2f}  "
            f"executed {metrics['cost/executions']:.0f} of {metrics['cost/proposed']:.0f}"
        )
        self._progress.update(self._task, completed=step, shown=shown)

    def close(self) -> None:
        """Stop drawing."""
        self._progress.stop()


def read_metrics(path: Path) -> list[Metrics]:
    """Return the steps that a :class:`JsonLinesSink` wrote; a half-written last line is dropped."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if _step_of(line) >= 0]


def _step_of(line: str) -> int:
    # A run killed while writing leaves at most one broken line, which no checkpoint refers to.
    try:
        return int(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError):
        return -1
