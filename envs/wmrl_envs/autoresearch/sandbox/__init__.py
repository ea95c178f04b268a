"""The sandbox that runs agents' programs: walls, limits, warm workers, records."""

from wmrl_envs.autoresearch.sandbox.pool import Sandbox, SandboxConfig
from wmrl_envs.autoresearch.sandbox.record import LEVELS, Execution, Level, Limits, Program, Status

__all__ = [
    "LEVELS",
    "Execution",
    "Level",
    "Limits",
    "Program",
    "Sandbox",
    "SandboxConfig",
    "Status",
]
