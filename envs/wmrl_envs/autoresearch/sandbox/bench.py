"""Bench: what the sandbox costs beside a plain Python process, for a small scikit-learn script."""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from wmrl_envs.autoresearch.sandbox.pool import Sandbox, SandboxConfig
from wmrl_envs.autoresearch.sandbox.record import Execution, Level, Program
from wmrl_envs.errors import InfrastructureError

SCRIPT = """
import time
started = time.perf_counter()
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
rows = np.random.default_rng(0).normal(size=(500, 8))
table = pd.DataFrame(rows, columns=list("abcdefgh"))
model = make_pipeline(StandardScaler(), Ridge()).fit(table.drop(columns="h"), table["h"])
table.assign(h=model.predict(table.drop(columns="h"))).to_csv("submission.csv", index=False)
print("own", time.perf_counter() - started)
"""
"""Prints how long its own work took, imports included."""

_OWN = re.compile(r"^own ([\d.e-]+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxBench:
    """Figures of one measurement; seconds are medians."""

    level: Level
    workers: int
    programs: int

    start_s: float
    """From nothing to every worker ready, imports made."""

    executions_per_s: float
    plain_per_s: float
    """The same script, one plain ``python`` process after another."""

    script_s: float
    """One sandboxed execution, asked to answered."""

    overhead_s: float
    """The part of ``script_s`` in which the script was not at work."""

    plain_s: float
    """One plain process."""

    plain_overhead_s: float
    """The part of ``plain_s`` in which the script was not at work: the interpreter's start."""

    over_plain_s: float
    """``script_s - plain_s``; negative where warm imports save more than the wall costs."""


def bench_sandbox(config: SandboxConfig, *, programs: int) -> SandboxBench:
    """Run the script ``programs`` times in the sandbox and, beside it, in plain processes.

    The two alternate in time, so that a busy machine slows both.

    Raises:
        InfrastructureError: If an execution is missing.
    """
    with Sandbox(config) as sandbox, tempfile.TemporaryDirectory(prefix="wmrl-bench-") as folder:
        started = time.perf_counter()
        sandbox.warm_up()
        start_s = time.perf_counter() - started
        plain, single = [], []
        for _ in range(programs):
            plain.append(_plain(Path(folder)))
            single.append(_sandboxed(sandbox))
        started = time.perf_counter()
        together = sandbox.run_many([Program(code=SCRIPT)] * programs)
        rate = programs / (time.perf_counter() - started)
        for execution in together:
            _own(execution)
        level = sandbox.level
    script_s = statistics.median(total for total, _ in single)
    plain_s = statistics.median(total for total, _ in plain)
    return SandboxBench(
        level=level,
        workers=config.workers,
        programs=programs,
        start_s=start_s,
        executions_per_s=rate,
        plain_per_s=1.0 / plain_s,
        script_s=script_s,
        overhead_s=statistics.median(total - own for total, own in single),
        plain_s=plain_s,
        plain_overhead_s=statistics.median(total - own for total, own in plain),
        over_plain_s=script_s - plain_s,
    )


def _sandboxed(sandbox: Sandbox) -> tuple[float, float]:
    started = time.perf_counter()
    execution = sandbox.run(Program(code=SCRIPT))
    return time.perf_counter() - started, _own(execution)


def _own(execution: Execution | None) -> float:
    found = _OWN.search(execution.stdout) if execution else None
    if found is None:
        raise InfrastructureError(f"the bench's script did not run: {execution}")
    return float(found.group(1))


def _plain(folder: Path) -> tuple[float, float]:
    started = time.perf_counter()
    done = subprocess.run(  # noqa: S603  (our own script)
        [sys.executable, "-c", SCRIPT], cwd=folder, capture_output=True, text=True, check=True
    )
    total = time.perf_counter() - started
    found = _OWN.search(done.stdout)
    if found is None:
        raise InfrastructureError(f"the bench's script did not run: {done.stdout[:200]}")
    return total, float(found.group(1))
