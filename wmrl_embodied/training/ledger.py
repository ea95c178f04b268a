"""Ledger: what a run really cost, by part; every "times less" figure is read from here.

A real execution costs the CPU seconds its worker measured. Everything else is the CPU time of the
training process while that part ran, so that anchors, the world model's predictions *and* its
fitting stand in the same sum. Evaluation is kept apart: it measures, it does not train.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Literal

from wmrl_embodied.execution.contract import Cost

Part = Literal["generation", "world_model", "estimation", "update"]
PARTS: tuple[Part, ...] = ("generation", "world_model", "estimation", "update")


@dataclass(kw_only=True, slots=True)
class Ledger:
    """Running totals; the one mutable record that every part of a step adds to."""

    proposed: int = 0
    """Rollouts proposed, executed or not."""

    asked: int = 0
    """Executions asked for."""

    executions: int = 0
    """Executions that ended with a score."""

    missing: int = 0
    """Executions asked for that ended without one."""

    retries: int = 0
    """Attempts made again after a failure of infrastructure."""

    steps: int = 0
    """Simulator control steps."""

    execution_s: float = 0.0
    """CPU seconds of real executions."""

    parts_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    """CPU seconds of the training process, by part."""

    @contextmanager
    def measure(self, part: Part) -> Generator[None]:
        """Add the CPU time of the enclosed block to ``part``."""
        began = time.process_time()
        try:
            yield
        finally:
            self.parts_s[part] += time.process_time() - began

    def charge(self, cost: Cost) -> None:
        """Add real executions."""
        self.asked += cost.executions + cost.missing
        self.executions += cost.executions
        self.missing += cost.missing
        self.retries += cost.retries
        self.steps += cost.steps
        self.execution_s += cost.cpu_seconds

    @property
    def total_s(self) -> float:
        """CPU seconds of everything that trained."""
        return self.execution_s + sum(self.parts_s.values())

    @property
    def executing_everything_s(self) -> float:
        """CPU seconds had every proposed rollout been executed, at the measured mean cost."""
        if self.executions == 0:
            return float("nan")
        mean = self.execution_s / self.executions
        rest = self.parts_s["generation"] + self.parts_s["update"]
        return mean * max(self.proposed, self.executions) + rest

    def metrics(self) -> dict[str, float]:
        """Return one flat dict for the sinks."""
        flat = {
            f"cost/{entry.name}": float(getattr(self, entry.name))
            for entry in fields(self)
            if entry.name != "parts_s"
        }
        parts = {f"cost/{part}_s": seconds for part, seconds in self.parts_s.items()}
        return {**flat, **parts, "cost/total_s": self.total_s}

    def to_json(self) -> dict:
        """Return the totals for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict) -> "Ledger":
        """Return what :meth:`to_json` was called on."""
        return cls(**saved)
