"""Domain: all that differs between training a robot and training a language agent.

The loop and the step see tasks, starts, proposals and outcomes; whether a proposal is a plan latent
that a simulator runs or a program that a sandbox runs is the domain's business.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from wmrl_embodied.execution.contract import Cost, Executor
from wmrl_embodied.policies.contract import ProposalPolicy, Starts
from wmrl_embodied.world_model.contract import WorldModel


@runtime_checkable
class Domain(Protocol):
    """A policy, its world model, and the means to run proposals for real."""

    @property
    def task_names(self) -> tuple[str, ...]:
        """One name a task."""
        ...

    @property
    def policy(self) -> ProposalPolicy:
        """What is trained."""
        ...

    @property
    def world_model(self) -> WorldModel:
        """What predicts."""
        ...

    @property
    def executor(self) -> Executor:
        """What runs proposals for real."""
        ...

    @property
    def evaluator(self) -> Executor:
        """What runs proposals by the benchmark's own protocol, for evaluation."""
        ...

    def init_states(self, task: int, split: str) -> tuple[int, ...]:
        """Return the initial states of a task that belong to ``"train"`` or ``"held_out"``."""
        ...

    def starts(self, tasks: Int[Tensor, " groups"], init_states: Int[Tensor, " groups"]) -> Starts:
        """Return starts with their context, observed once and remembered."""
        ...

    def start_cost(self) -> Cost:
        """Return, and forget, what observing starts has cost since the last call."""
        ...

    def close(self) -> None:
        """Stop workers and simulators."""
        ...
