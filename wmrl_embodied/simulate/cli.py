"""The ``wmrl simulate`` command: compare estimators under wrong world models, on any CPU."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from wmrl_embodied.simulate import report, theory
from wmrl_embodied.simulate.engine import single_thread
from wmrl_embodied.simulate.suite import SimulateConfig, quick, run_suite


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulateCommand:
    """Compare estimators at equal cost under nine kinds of world-model error."""

    suite: SimulateConfig = field(default_factory=SimulateConfig)
    """What is compared."""

    quick: bool = False
    """A smaller comparison: at most 4 seeds, binary scores, five estimators."""

    theory: bool = False
    """Instead of the comparison, measure how error floors grow with bias and noise."""

    json: bool = False
    """Print the summary as JSON and nothing else."""

    output: Path | None = None
    """Folder for JSON, CSV and figure; None writes ``runs/simulate``, or nothing with ``json``."""


def main(command: SimulateCommand) -> int:
    """Run the command; return the exit status.

    Args:
        command: What to do.
    """
    folder = command.output
    if folder is None and not command.json:
        folder = Path("runs") / "simulate"
    console = Console()
    if command.theory:
        with single_thread():
            floors = theory.theory(theory.TheoryConfig(first_seed=command.suite.first_seed))
        if folder is not None:
            theory.write(floors, folder)
        if command.json:
            sys.stdout.write(json.dumps(floors.summary()) + "\n")
        else:
            theory.show(floors, console)
        return 0
    with single_thread():
        result = run_suite(quick(command.suite) if command.quick else command.suite)
    if folder is not None:
        report.write(result, folder)
    if command.json:
        sys.stdout.write(json.dumps(result.summary()) + "\n")
    else:
        report.show(result, console)
        console.print(f"written to {folder}")
    return 0
