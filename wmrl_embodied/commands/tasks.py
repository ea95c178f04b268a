"""``wmrl tasks``: the tasks of AutoResearch, listed, checked, given a leaderboard."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from wmrl_embodied.files import write_atomically
from wmrl_envs.autoresearch.board import as_csv, measure_templates
from wmrl_envs.autoresearch.sandbox import Sandbox
from wmrl_envs.autoresearch.tasks import load_task, task_names
from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class TasksList:
    """List the bundled tasks."""

    def run(self) -> int:
        """Print one row a task."""
        table = Table()
        for column in ("name", "kind", "metric", "train rows", "hidden rows", "board", "title"):
            table.add_column(column)
        for name in task_names():
            task = load_task(name)
            with (task.public / "train.csv").open(encoding="utf-8") as file:
                train_rows = sum(1 for _ in file) - 1
            board = len(task.boards["all"].scores)
            numbers = (str(train_rows), str(len(task.answers)), str(board))
            table.add_row(name, task.kind, task.metric.name, *numbers, task.title)
        Console().print(table)
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TasksCheck:
    """Check a task folder: its files, data, sample submission and leaderboard."""

    folder: tyro.conf.Positional[Path]
    """The folder, or a bundled task's name."""

    def run(self) -> int:
        """Print what the task is; a broken rule is an error."""
        task = load_task(_named(self.folder))
        Console().print(
            f"{task.name}: {task.kind}, {task.metric.name}, {len(task.answers)} hidden rows, "
            f"{len(task.boards['all'].scores)} entries on the leaderboard: in order"
        )
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TasksLeaderboard:
    """Make a task's leaderboard: run the template pipelines in the sandbox and measure them."""

    folder: tyro.conf.Positional[Path]
    """The folder, or a bundled task's name."""

    replace: bool = False
    """Whether to write over a leaderboard that is there."""

    def run(self) -> int:
        """Write ``leaderboard.csv`` into the folder."""
        task = load_task(_named(self.folder), need_leaderboard=False)
        if task.leaderboard_file.exists() and not self.replace:
            raise InvalidInputError(
                f"leaderboard must not be there yet, got {task.leaderboard_file}; pass --replace"
            )
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        with Sandbox() as sandbox:
            entries = measure_templates(task, sandbox)
        write_atomically(task.leaderboard_file, as_csv(entries))
        Console().print(f"{task.leaderboard_file}: {len(entries)} entries")
        return 0


def _named(folder: Path) -> str | Path:
    return str(folder) if str(folder) in task_names() else folder


@dataclass(frozen=True, kw_only=True, slots=True)
class Tasks:
    """The tasks of WMRL-AutoResearch; without a subcommand they are listed."""

    action: (
        Annotated[TasksList, tyro.conf.subcommand("list")]
        | Annotated[TasksCheck, tyro.conf.subcommand("check")]
        | Annotated[TasksLeaderboard, tyro.conf.subcommand("leaderboard")]
    ) = TasksList()

    def run(self) -> int:
        """Run the subcommand."""
        return self.action.run()
