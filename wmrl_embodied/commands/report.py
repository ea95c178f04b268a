"""``wmrl report``: write a run's page again, also while the run goes on."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from wmrl_embodied.reporting.report import write_report
from wmrl_embodied.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Write the report page of a run."""

    folder: tyro.conf.Positional[Path]
    """Run folder."""

    def run(self) -> int:
        """Write the page and print where it is."""
        Console().print(f"report: {write_report(RunFolder.open(self.folder))}")
        return 0
