"""World-model reinforcement learning for embodied and language agents.

Importing this package registers the environments' Gymnasium ids and does nothing else.
"""

import gymnasium as gym

import wmrl_envs  # noqa: F401  (registers the simulated environments' ids)

__version__ = "0.1.0"

gym.register(
    id="WMRL-WorldModel",
    entry_point="wmrl_embodied.world_model.env:WorldModelEnv",
    vector_entry_point="wmrl_embodied.world_model.env:WorldModelVectorEnv",
)
