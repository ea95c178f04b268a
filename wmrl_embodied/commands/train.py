"""``wmrl train`` and ``wmrl resume``: post-train a policy, most rollouts imagined."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.status import Status
from rich.table import Table

from wmrl_embodied.execution.episode import Episode, EpisodeJob
from wmrl_embodied.presets import PRESETS, libero_quick
from wmrl_embodied.reporting.films import film_before_and_after
from wmrl_embodied.reporting.report import saving, write_report
from wmrl_embodied.reporting.sinks import JsonLinesSink, TensorBoardSink, TerminalSink, read_metrics
from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.evaluate import SPLITS, change
from wmrl_embodied.training.libero import LiberoDomain
from wmrl_embodied.training.loop import RunResult, Sink, train
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_embodied.world_model.store import save_world_model

_PRESET_SUBCOMMANDS = tyro.extras.subcommand_type_from_defaults(
    {name: make() for name, make in PRESETS.items()},
    descriptions={name: (make.__doc__ or "").strip() for name, make in PRESETS.items()},
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Train:
    """Post-train a policy: really execute a few rollouts, predict the rest."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="", constructor=_PRESET_SUBCOMMANDS)] = field(
        default_factory=libero_quick
    )
    """The run."""

    folder: Path | None = None
    """Run folder; by default ``runs/NAME-ESTIMATOR-SEED``."""

    film: bool = True
    """Film one held-out episode a task before and after."""

    quiet: bool = False
    """Print the result only."""

    def run(self) -> int:
        """Train, print the result and write the report."""
        config = self.config
        path = self.folder or Path("runs") / f"{config.name}-{config.estimator}-{config.seed}"
        return run_training(
            config, RunFolder.create(path, config), film=self.film, quiet=self.quiet
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """Go on with a run from its newest checkpoint, exactly as if it had never stopped."""

    folder: tyro.conf.Positional[Path]
    """Run folder."""

    quiet: bool = False
    """Print the result only."""

    def run(self) -> int:
        """Train on, print the result and write the report."""
        folder = RunFolder.open(self.folder)
        return run_training(folder.config(), folder, film=True, quiet=self.quiet)


def run_training(config: TrainConfig, folder: RunFolder, *, film: bool, quiet: bool) -> int:
    """Run ``config`` in ``folder`` with every sink, then print and write what came of it."""
    logging.basicConfig(level=logging.ERROR if quiet else logging.WARNING)
    console = Console(quiet=quiet)
    console.print(f"[bold]{config.name}[/] with {config.estimator!r}, seed {config.seed}")
    console.print(f"run folder: {folder.path}")
    with console.status("starting simulators") as status:
        domain = LiberoDomain(config.libero, config.world_model, on_episode=_EpisodeStatus(status))

        def sinks(step: int) -> list[Sink]:
            status.stop()
            outputs: list[Sink] = [
                JsonLinesSink(folder.metrics, resume_at=step),
                TensorBoardSink(folder.tensorboard, resume_at=step),
            ]
            if not quiet:
                outputs.append(TerminalSink(console, total=config.steps, start=step))
            return outputs

        try:
            result = train(config, domain, folder, sinks=sinks)
            save_world_model(domain.world_model, folder.world_model, note={"run": config.name})
            if film:
                film_before_and_after(domain, folder.videos)
        finally:
            domain.close()
    show_result(Console(), config, result, folder)
    Console().print(f"report: {write_report(folder)}")
    return 0


class _EpisodeStatus:
    """Says on the status line which real episode ended last."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._count = 0

    def __call__(self, job: EpisodeJob, episode: Episode | None) -> None:
        """Count ``episode`` and show its outcome."""
        self._count += 1
        verdict = "missing" if episode is None else "success" if episode.success else "failure"
        self._status.update(
            f"{self._count} real episodes; task {job.task}, initial state {job.init_state}: {verdict}"
        )


def show_result(
    console: Console, config: TrainConfig, result: RunResult, folder: RunFolder
) -> None:
    """Print real success before and after with intervals, and what the run cost."""
    table = Table(title=f"{config.name}, {config.estimator}, seed {config.seed}")
    for column in ("initial states", "before", "after", "paired starts", "p"):
        table.add_column(column)
    for split in SPLITS:
        rates = result.before.rate(split), result.after.rate(split)
        count, p_value = change(result.before, result.after, split)
        table.add_row(split, *[str(rate or "–") for rate in rates], str(count), f"{p_value:.3g}")
    console.print(table)
    ledger, ratio = result.ledger, saving(read_metrics(folder.metrics))
    console.print(
        f"{ledger.executions} of {ledger.proposed} rollouts really executed, {ledger.missing} "
        f"missing; {ledger.total_s:.0f} CPU seconds"
        + (f", {ratio:.1f} times less than executing everything" if ratio else "")
    )
