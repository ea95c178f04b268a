"""``wmrl envs``: the Gymnasium ids this package registers."""

from dataclasses import dataclass

import gymnasium as gym
from rich.console import Console
from rich.table import Table

_ABOUT = {
    "WMRL-LIBERO": "LIBERO robot simulation: every suite, task and official initial state",
    "WMRL-WorldModel": "predicted episodes of a fitted world model, batched by the thousand",
    "WMRL-AutoResearch": "an agent writes machine-learning code, a sandbox scores it on a leaderboard",
    "WMRL-MLEDojo": "the same over competitions laid out as MLE-Dojo lays them out",
    "WMRL-DSBench": "the same over DSBench's data-modelling tasks",
    "WMRL-MicroPick": "one-axis reach and grasp without a simulator, for tests",
    "WMRL-MicroQuiz": "one-turn text environment without a sandbox, for tests",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Envs:
    """List the registered environments."""

    def run(self) -> int:
        """Print one row an id."""
        table = Table()
        table.add_column("id")
        table.add_column("what it is")
        for name in sorted(spec for spec in gym.registry if spec.startswith("WMRL-")):
            table.add_row(name, _ABOUT.get(name, ""))
        Console().print(table)
        return 0
