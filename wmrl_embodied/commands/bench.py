"""``wmrl bench``: our parts beside what they replace, measured on this machine."""

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated

import tyro
from rich.console import Console

from wmrl_embodied.benchmarks.core import CoreBenchmark, main
from wmrl_embodied.commands.bench_sandbox import BenchSandbox
from wmrl_envs.libero.bench import BenchConfig, run_bench


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchEnv:
    """Time ``WMRL-LIBERO`` beside LIBERO's own loop, on the same work, and check equality."""

    config: BenchConfig = field(default_factory=BenchConfig)
    """What is run."""

    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> int:
        """Run both loops and print what was measured."""
        result = asdict(run_bench(self.config))
        console = Console()
        if self.json:
            console.print_json(json.dumps(result))
            return 0
        for name, value in result.items():
            console.print(
                f"{name:24s} {value:.4g}" if isinstance(value, float) else f"{name:24s} {value}"
            )
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchCore:
    """Time the estimator's own work for one step."""

    config: CoreBenchmark = field(default_factory=CoreBenchmark)
    """What is timed."""

    def run(self) -> int:
        """Run the benchmark and print milliseconds a step."""
        return main(self.config)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Measure a part of the toolkit on this machine."""

    part: (
        Annotated[BenchEnv, tyro.conf.subcommand("env")]
        | Annotated[BenchCore, tyro.conf.subcommand("core")]
        | Annotated[BenchSandbox, tyro.conf.subcommand("sandbox")]
    )

    def run(self) -> int:
        """Run the chosen benchmark."""
        return self.part.run()
