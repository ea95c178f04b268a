"""Environments of WMRL; importing this package registers their Gymnasium ids.

Registration is by string, so importing costs nothing and needs no simulator.
"""

import gymnasium as gym

gym.register(id="WMRL-LIBERO", entry_point="wmrl_envs.libero.env:LiberoEnv")
