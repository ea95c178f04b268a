"""Scripted experts of the ten LIBERO-Long tasks, for demonstrations and for testing."""

from wmrl_envs.libero.expert.registry import EXPERTS, Expert, expert_name, make_expert
from wmrl_envs.libero.expert.scene import Scene

__all__ = ["EXPERTS", "Expert", "Scene", "expert_name", "make_expert"]
