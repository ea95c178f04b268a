"""``wmrl bench sandbox``: executions per second and the overhead over plain ``python``."""

import json
from dataclasses import asdict, dataclass

from rich.console import Console

from wmrl_envs.autoresearch.sandbox import Level, SandboxConfig
from wmrl_envs.autoresearch.sandbox.bench import bench_sandbox


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchSandbox:
    """Measure the sandbox with a small scikit-learn script."""

    workers: int = 1
    """Programs that run at one time."""

    programs: int = 20
    """Times the script is run in each way."""

    level: Level | None = None
    """Kind of wall; None takes the strongest that works here."""

    unsafe: bool = False
    """Whether resource limits alone will do."""

    json: bool = False
    """Print one line of JSON."""

    def run(self) -> int:
        """Measure and print."""
        config = SandboxConfig(workers=self.workers, level=self.level, unsafe=self.unsafe)
        figures = asdict(bench_sandbox(config, programs=self.programs))
        if self.json:
            Console(soft_wrap=True).print(json.dumps(figures), markup=False, highlight=False)
            return 0
        for name, value in figures.items():
            shown = f"{value:.3f}" if isinstance(value, float) else str(value)
            Console().print(f"{name:20} {shown}")
        return 0
