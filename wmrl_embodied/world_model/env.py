"""Learned environment: predicted episodes behind a Gymnasium face, one at a time or by the thousand.

An episode is one step: the action is a plan latent, the reward its predicted score, and the
episode ends. Starts are those that the world model has observed for real.
"""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from wmrl_embodied.assets import find_asset
from wmrl_embodied.policies.contract import Proposals, Starts
from wmrl_embodied.world_model.plan_latent import PlanLatentModel
from wmrl_embodied.world_model.store import load_world_model
from wmrl_envs.errors import InvalidInputError

Observation = dict[str, Any]
DEFAULT_MODEL = Path("world_model_libero10.safetensors")
PLAN_BOUND = 6.0
"""Largest plan number accepted, in prior standard deviations."""


class WorldModelVectorEnv(gym.vector.VectorEnv):
    """``num_envs`` predicted episodes at once, scored in one batch.

    Observation: ``context`` float32 (num_envs, context), ``task`` int64 (num_envs,).
    Action: plans, float32 (num_envs, dims), in prior standard deviations.
    Reward: predicted score in [0, 1]; ``info["score_std"]`` is how sure it is of it.
    Every step terminates every episode; the observation returned begins the next one
    (same-step autoreset).
    """

    metadata = {"render_modes": [], "autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, *, model: Path | PlanLatentModel = DEFAULT_MODEL) -> None:
        """Load the model.

        Args:
            num_envs: Episodes a step, at least 1.
            model: A fitted world model or the file of one.

        Raises:
            InvalidInputError: If the model has observed nothing or ``num_envs`` is below 1.
        """
        if num_envs < 1:
            raise InvalidInputError(f"num_envs must be at least 1, got {num_envs}")
        if not isinstance(model, PlanLatentModel):
            model = load_world_model(find_asset(Path(model)))
        self._model, self._starts = model, model.observed_starts()
        count, context = self._starts.context.shape
        if count == 0:
            raise InvalidInputError(
                "model must have observed at least one start, got none; fit it on real rollouts"
            )
        self.num_envs = num_envs
        self.single_observation_space = gym.spaces.Dict(
            {
                "context": gym.spaces.Box(-np.inf, np.inf, (context,), np.float32),
                "task": gym.spaces.Discrete(model.num_tasks),
            }
        )
        self.single_action_space = gym.spaces.Box(
            -PLAN_BOUND, PLAN_BOUND, (model.plan_dims,), np.float32
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._rows: NDArray[np.int64] | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a start for every episode."""
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first)
        self._rows = self._draw()
        return self._observe(), {}

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[Observation, NDArray, NDArray, NDArray, dict[str, Any]]:
        """Score one plan for every episode and begin the next episodes."""
        if self._rows is None:
            raise gym.error.ResetNeeded("reset() must be called before step()")
        plans = np.asarray(actions, dtype=np.float32)
        if plans.shape != self.action_space.shape or not np.isfinite(plans).all():
            raise InvalidInputError(
                f"actions must be finite and of shape {self.action_space.shape}, got "
                f"{plans.shape} with {int((~np.isfinite(plans)).sum())} non-finite entries"
            )
        rows = torch.from_numpy(self._rows)
        starts = Starts(
            tasks=self._starts.tasks[rows],
            init_states=self._starts.init_states[rows],
            context=self._starts.context[rows],
        )
        prediction = self._model.predict(
            Proposals(
                starts=starts,
                plans=torch.from_numpy(plans)[:, None],
                logp=torch.zeros(self.num_envs, 1),
            )
        )
        info = {"score_std": prediction.std[:, 0].numpy(), "final_obs": self._observe()}
        self._rows = self._draw()
        reward = prediction.score[:, 0].double().numpy()
        ended, cut = np.ones(self.num_envs, dtype=bool), np.zeros(self.num_envs, dtype=bool)
        return self._observe(), reward, ended, cut, info

    def _draw(self) -> NDArray[np.int64]:
        return self.np_random.integers(len(self._starts.tasks), size=self.num_envs)

    def _observe(self) -> Observation:
        rows = torch.from_numpy(self._rows)
        return {
            "context": self._starts.context[rows].float().numpy(),
            "task": self._starts.tasks[rows].numpy(),
        }


class WorldModelEnv(gym.Env[Observation, NDArray[np.float32]]):
    """One predicted episode at a time; see :class:`WorldModelVectorEnv` for the spaces."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, *, model: Path | PlanLatentModel = DEFAULT_MODEL) -> None:
        """Load the model; a path names its file."""
        self._batch = WorldModelVectorEnv(1, model=model)
        self.observation_space = self._batch.single_observation_space
        self.action_space = self._batch.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a start."""
        super().reset(seed=seed)
        observation, info = self._batch.reset(seed=seed)
        return _first(observation), info

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Score a plan; the episode ends."""
        _, reward, _, _, info = self._batch.step(np.asarray(action)[None])
        final = _first(info["final_obs"])
        return final, float(reward[0]), True, False, {"score_std": float(info["score_std"][0])}


def _first(observation: Observation) -> Observation:
    return {"context": observation["context"][0], "task": observation["task"][0]}
