"""Doubles for unit tests: a domain whose outcomes follow a rule, with no simulator behind it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from wmrl_embodied.execution.contract import Cost, Outcomes
from wmrl_embodied.policies.contract import Proposals, Starts
from wmrl_embodied.policies.plan import PlanPolicy, PlanPolicyConfig
from wmrl_embodied.world_model.plan_latent import PlanLatentConfig, PlanLatentModel

TARGET = torch.tensor([1.2, -0.8])
"""Plans near it succeed: the untrained mean plan, zero, does not."""


class DoubleExecutor:
    """Scores a plan by its distance to ``TARGET``; every ``lose_every``-th execution is missing."""

    def __init__(self, lose_every: int = 0) -> None:
        self.lose_every, self.count = lose_every, 0

    def execute(self, proposals: Proposals, asked: Tensor) -> Outcomes:
        """Score what is asked for at a tenth of a CPU second each."""
        success = ((proposals.plans - TARGET).norm(dim=-1) < 1.0).float()
        numbers = asked.flatten().long().cumsum(0).view(asked.shape) + self.count
        lost = asked & (numbers % self.lose_every == 0) if self.lose_every else asked & False
        executed, self.count = asked & ~lost, self.count + int(asked.sum())
        return Outcomes(
            scores=torch.where(executed, success, torch.nan),
            executed=executed,
            cost=Cost(
                executions=int(executed.sum()),
                steps=10 * int(executed.sum()),
                cpu_seconds=0.1 * int(executed.sum()),
                missing=int(lost.sum()),
            ),
        )

    def close(self) -> None:
        """Nothing to stop."""


class DoubleDomain:
    """Two tasks with ten training and five held-out starts each."""

    def __init__(self, lose_every: int = 0) -> None:
        self.task_names = ("double_a", "double_b")
        self.policy = PlanPolicy(PlanPolicyConfig(dims=2, tasks=2, context=3))
        self.world_model = PlanLatentModel(PlanLatentConfig(), num_tasks=2)
        self.executor = self.evaluator = DoubleExecutor(lose_every)

    def init_states(self, task: int, split: str) -> tuple[int, ...]:
        """Return disjoint starts, other ones for each task."""
        first = 100 * task
        return tuple(
            range(first, first + 10) if split == "train" else range(first + 10, first + 15)
        )

    def starts(self, tasks: Tensor, init_states: Tensor) -> Starts:
        """Return starts with a context that says nothing."""
        angle = init_states.float()[:, None] * torch.tensor([1.0, 2.0, 3.0])
        return Starts(tasks=tasks, init_states=init_states, context=angle.sin() / 3**0.5)

    def start_cost(self) -> Cost:
        """Return no cost."""
        return Cost()

    def close(self) -> None:
        """Nothing to stop."""


@pytest.fixture
def double_domain() -> Callable[..., DoubleDomain]:
    """Return the class of the double, to be made with ``lose_every`` where losses are wanted."""
    return DoubleDomain
