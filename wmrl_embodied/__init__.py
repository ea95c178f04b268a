"""World-model reinforcement learning for embodied and language agents.

Importing this package registers the environments' Gymnasium ids and does nothing else.
"""

import wmrl_envs  # noqa: F401  (registers the ids)

__version__ = "0.1.0"
