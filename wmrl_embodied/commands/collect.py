"""``wmrl collect``: scripted demonstrations of LIBERO-Long tasks."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from wmrl_envs.libero.collect import CollectConfig, collect


@dataclass(frozen=True, kw_only=True, slots=True)
class Collect:
    """Collect demonstrations by scripted experts, in the HDF5 layout of LIBERO's own."""

    config: CollectConfig = field(default_factory=CollectConfig)
    """The collection; a second run makes only what is missing."""

    def run(self) -> int:
        """Collect and print a row a task."""
        table = Table(title=str(self.config.output))
        for column in ("task", "demonstrations", "failures", "missing", "mean steps", "CPU s each"):
            table.add_column(column)
        for report in collect(self.config):
            table.add_row(
                report.task,
                str(report.successes),
                str(report.failures),
                str(report.missing),
                f"{report.mean_steps:.0f}",
                f"{report.mean_cpu_s:.1f}",
            )
        Console().print(table)
        return 0
