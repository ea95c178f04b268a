"""LIBERO domain: plan latents for a small vision-language-action policy on real simulation."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wmrl_embodied.assets import find_asset
from wmrl_embodied.execution.contract import Cost
from wmrl_embodied.execution.robot import (
    OnEpisode,
    RobotExecutor,
    RobotSetting,
    cost_of,
    robot_pool,
)
from wmrl_embodied.policies.checkpoint import load_policy
from wmrl_embodied.policies.contract import Starts
from wmrl_embodied.policies.plan import PlanPolicy, PlanPolicyConfig
from wmrl_embodied.training.config import LiberoConfig
from wmrl_embodied.world_model.plan_latent import PlanLatentConfig, PlanLatentModel
from wmrl_envs.errors import InfrastructureError
from wmrl_envs.libero.suite import find_task, init_states_of


class LiberoDomain:
    """Tasks of one suite, one action policy, one plan policy and its world model."""

    def __init__(
        self,
        config: LiberoConfig,
        world_model: PlanLatentConfig,
        *,
        on_episode: OnEpisode | None = None,
    ) -> None:
        self.config = config
        checkpoint = find_asset(config.policy)
        action_policy = load_policy(checkpoint)
        tasks = [find_task(config.suite, task) for task in config.tasks]
        self.task_names = tuple(task.name for task in tasks)
        self._context_dims = action_policy.config.features
        self.policy = PlanPolicy(
            PlanPolicyConfig(
                dims=action_policy.plan_dims,
                tasks=len(tasks),
                context=self._context_dims,
                start_std=config.exploration,
            )
        )
        self.world_model = PlanLatentModel(world_model, num_tasks=len(tasks))
        setting = RobotSetting(
            policy=checkpoint, suite=config.suite, tasks=config.tasks, horizon=config.horizon
        )
        pool = robot_pool(config.pool)
        self.executor = RobotExecutor(setting, pool, on_episode=on_episode)
        protocol = replace(setting, horizon=None)
        self.evaluator = RobotExecutor(protocol, pool, on_episode=on_episode)
        self._contexts: dict[tuple[int, int], Float[Tensor, " context"]] = {}
        self._start_cost: list[Cost] = []

    def init_states(self, task: int, split: str) -> tuple[int, ...]:
        """Return the initial states of a task that belong to ``"train"`` or ``"held_out"``."""
        return init_states_of(self.config.suite, self.config.tasks[task], split)

    def starts(self, tasks: Int[Tensor, " groups"], init_states: Int[Tensor, " groups"]) -> Starts:
        """Return starts with their context: z of the first observation, observed once each.

        Raises:
            InfrastructureError: If a start cannot be observed after every retry.
        """
        wanted = list(zip(tasks.tolist(), init_states.tolist(), strict=True))
        new = sorted(set(wanted) - self._contexts.keys())
        dims = self.policy.config.dims
        attempted = self.executor.run([self.executor.start_job(*key, dims) for key in new])
        for key, record in zip(new, attempted, strict=True):
            if record.answer is None:
                raise InfrastructureError(
                    f"task {key[0]}, initial state {key[1]} could not be observed: {record.failure}"
                )
            # LayerNorm leaves entries of unit size; the division makes |x| one.
            features = torch.from_numpy(record.answer.features[0])
            self._contexts[key] = features / self._context_dims**0.5
        if new:
            self._start_cost.append(replace(cost_of(attempted), executions=0))
        context = torch.stack([self._contexts[key] for key in wanted])
        return Starts(tasks=tasks, init_states=init_states, context=context)

    def start_cost(self) -> Cost:
        """Return, and forget, what observing starts has cost since the last call."""
        seconds = sum(cost.cpu_seconds for cost in self._start_cost)
        retries = sum(cost.retries for cost in self._start_cost)
        self._start_cost.clear()
        return Cost(cpu_seconds=seconds, retries=retries)

    def close(self) -> None:
        """Stop the simulators."""
        self.executor.close()
