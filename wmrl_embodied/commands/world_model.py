"""``wmrl fidelity``: how well a run's world model orders held-out real outcomes."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import torch
import tyro
from rich.console import Console
from rich.table import Table

from wmrl_embodied.policies.contract import Proposals
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_embodied.world_model.fidelity import Fidelity
from wmrl_embodied.world_model.plan_latent import Form, PlanLatentModel
from wmrl_embodied.world_model.store import load_world_model

_COLUMNS = ("auc", "within_group_r2", "within_group_slope", "kendall_tau", "calibration_error")


@dataclass(frozen=True, kw_only=True, slots=True)
class FidelityCommand:
    """Cross-validate a world model over initial states, beside the trivial baselines."""

    folder: tyro.conf.Positional[Path]
    """Run folder."""

    as_json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> int:
        """Print every form's held-out fidelity for each task, and the price of a prediction."""
        model = load_world_model(RunFolder.open(self.folder).world_model)
        rows = [
            (task, form, model.held_out_fidelity(task, form))
            for task in range(model.num_tasks)
            for form in get_args(Form)
        ]
        microseconds = _prediction_us(model)
        if self.as_json:
            found = [{"task": task, "form": form, **asdict(shown)} for task, form, shown in rows]
            Console().print_json(json.dumps({"prediction_us": microseconds, "fidelity": found}))
            return 0
        self._show(rows, microseconds, model)
        return 0

    def _show(
        self,
        rows: list[tuple[int, Form, Fidelity]],
        microseconds: float,
        model: PlanLatentModel,
    ) -> None:
        table = Table(title=f"held out by initial state; a prediction takes {microseconds:.0f} µs")
        for column in ("task", "form", "in use", "rollouts", *_COLUMNS):
            table.add_column(column.replace("_", " "))
        for task, form, shown in rows:
            values = [f"{getattr(shown, column):.2f}" for column in _COLUMNS]
            used = "yes" if model.forms[task] == form else ""
            table.add_row(str(task), form, used, str(shown.rollouts), *values)
        Console().print(table)


def _prediction_us(model: PlanLatentModel, count: int = 1000) -> float:
    starts = model.observed_starts()
    plans = torch.zeros(len(starts.tasks), count, model.plan_dims)
    proposals = Proposals(starts=starts, plans=plans, logp=torch.zeros(plans.shape[:2]))
    began = time.process_time()
    model.predict(proposals)
    return 1e6 * (time.process_time() - began) / plans[..., 0].numel()
