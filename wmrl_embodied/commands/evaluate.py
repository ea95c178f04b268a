"""``wmrl eval``: real success of a run's policy by LIBERO's protocol."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from wmrl_embodied.training.config import EvaluationConfig
from wmrl_embodied.training.evaluate import SPLITS, Evaluation, evaluate
from wmrl_embodied.training.libero import LiberoDomain
from wmrl_embodied.training.loop import start
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_embodied.training.statistics import Interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Eval:
    """Evaluate a run's newest checkpoint on official initial states, training and held-out."""

    folder: tyro.conf.Positional[Path]
    """Run folder."""

    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Initial states and draws."""

    as_json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> int:
        """Evaluate and print success rates with Wilson 95 % intervals."""
        folder = RunFolder.open(self.folder)
        config = folder.config()
        domain = LiberoDomain(config.libero, config.world_model)
        try:
            state = start(config, domain, folder.checkpoints)
            found = evaluate(domain, self.evaluation, seed=config.seed)
        finally:
            domain.close()
        rates = _rates(found, domain.task_names)
        if self.as_json:
            shown = [
                {"task": task, "split": split, "plan": plan, **asdict(rate)}
                for task, split, plan, rate in rates
            ]
            Console().print_json(
                json.dumps({"step": state.step, "missing": found.missing, "rates": shown})
            )
            return 0
        table = Table(title=f"{self.folder}, step {state.step}, {found.missing} episodes missing")
        for column in ("task", "initial states", "plan", "success"):
            table.add_column(column)
        for task, split, plan, rate in rates:
            table.add_row(task, split, plan, str(rate))
        Console().print(table)
        return 0


def _rates(found: Evaluation, tasks: tuple[str, ...]) -> list[tuple[str, str, str, Interval]]:
    # One row a task, split and kind of plan that was evaluated.
    rows = []
    for task in tasks:
        for split in SPLITS:
            for plan in ("mean", "drawn"):
                rate = found.rate(split, task=task, of_mean=plan == "mean")
                if rate is not None:
                    rows.append((task, split, plan, rate))
    return rows
