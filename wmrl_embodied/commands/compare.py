"""``wmrl compare``: the same run under several estimators and seeds, in one table."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from wmrl_embodied.commands.train import run_training
from wmrl_embodied.files import write_atomically
from wmrl_embodied.presets import PRESETS
from wmrl_embodied.reporting.sinks import read_metrics
from wmrl_embodied.training.compare import Comparison, Curve, compare, curve_of
from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.evaluate import Evaluation
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class Compare:
    """Run a preset under several estimators and seeds; runs that finished are not run again."""

    preset: tyro.conf.Positional[str]
    """Name of the preset."""

    estimators: tuple[str, ...] = ("real", "anchors_only", "paper", "fast", "balanced", "auto")
    """Estimator presets; ``real`` is the reference."""

    seeds: int = 3
    """Seeds 0 to ``seeds - 1``."""

    tasks: tuple[int, ...] | None = None
    """Tasks instead of the preset's."""

    steps: int | None = None
    """Updates instead of the preset's."""

    evaluate_every: int = 5
    """Steps between evaluations on held-out initial states, which draw the learning curve."""

    folder: Path = Path("runs/compare")
    """Where the runs and ``comparison.json`` are kept."""

    def run(self) -> int:
        """Run what is missing, then print and write the comparison."""
        curves = [
            self._curve(estimator, seed)
            for seed in range(self.seeds)
            for estimator in self.estimators
        ]
        rows = compare(curves, reference="real")
        record = {
            "preset": self.preset,
            "rows": [asdict(row) for row in rows],
            "curves": [
                {
                    "estimator": curve.estimator,
                    "seed": curve.seed,
                    "cost_s": curve.cost_s.tolist(),
                    "success": curve.success.tolist(),
                    "executions": curve.executions.tolist(),
                }
                for curve in curves
            ],
        }
        write_atomically(self.folder / "comparison.json", json.dumps(record, indent=1))
        _show(rows)
        return 0

    def _config(self, estimator: str, seed: int) -> TrainConfig:
        if self.preset not in PRESETS:
            raise InvalidInputError(
                f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}"
            )
        config = PRESETS[self.preset]()
        return replace(
            config,
            estimator=estimator,
            seed=seed,
            steps=self.steps or config.steps,
            libero=replace(config.libero, tasks=self.tasks or config.libero.tasks),
            evaluation=replace(config.evaluation, every=self.evaluate_every),
        )

    def _curve(self, estimator: str, seed: int) -> Curve:
        config = self._config(estimator, seed)
        folder = RunFolder.create(self.folder / f"{estimator}-{seed}", config)
        if not (folder.path / "evaluation_after.json").exists():
            run_training(config, folder, film=False, quiet=True)
        saved = json.loads((folder.path / "evaluation_before.json").read_text(encoding="utf-8"))
        before = Evaluation.from_json(saved).rate("held_out")
        return curve_of(
            read_metrics(folder.metrics),
            estimator=estimator,
            seed=seed,
            before=before.value if before else 0.0,
        )


def _show(rows: list[Comparison]) -> None:
    table = Table(title="real success on held-out initial states against honest cost")
    for column in (
        "estimator", "final success", "CPU s", "executions", "reached target", "speed-up",
    ):  # fmt: skip
        table.add_column(column)
    for row in rows:
        table.add_row(
            row.estimator,
            str(row.final),
            f"{row.cost_s:.0f}",
            f"{row.executions:.0f}",
            f"{row.reached} of {row.seeds}",
            f"{row.speed_up:.1f}",
        )
    Console().print(table)
