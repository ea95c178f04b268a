"""What the toolkit asks of an executor: real outcomes, or the fact that one is missing."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_embodied.policies.contract import Proposals


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What real executions cost."""

    executions: int = 0
    """Episodes or runs that ended with a score."""

    steps: int = 0
    """Simulator control steps."""

    cpu_seconds: float = 0.0
    """CPU time of the workers, attempts that failed included."""

    missing: int = 0
    """Executions asked for that ended without a score, after every retry."""

    retries: int = 0
    """Attempts that failed for reasons of infrastructure and were made again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """Real scores of what was executed."""

    scores: Float[Tensor, "groups group"]
    """In [0, 1]; NaN where nothing was asked for and where an execution is missing."""

    executed: Bool[Tensor, "groups group"]
    """True where a real score is there."""

    cost: Cost


@runtime_checkable
class Executor(Protocol):
    """Runs proposals for real."""

    def execute(self, proposals: Proposals, asked: Bool[Tensor, "groups group"]) -> Outcomes:
        """Execute the proposals marked in ``asked``."""
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...
