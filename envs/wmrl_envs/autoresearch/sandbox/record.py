"""What a sandboxed execution is asked to do, and what came of it."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from wmrl_envs.errors import InvalidInputError

Level = Literal["bubblewrap", "landlock", "rlimits"]
"""Kinds of wall, strongest first."""

LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock", "rlimits")

Status = Literal["ok", "error", "timeout", "cpu", "memory", "processes", "disk", "killed"]
"""How a program ended; all of them are the agent's doing."""

STATUSES: tuple[Status, ...] = (
    "ok", "error", "timeout", "cpu", "memory", "processes", "disk", "killed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds of one execution, all of its processes together unless said otherwise."""

    wall_s: float = 30.0
    """Wall-clock seconds."""

    cpu_s: float = 30.0
    """CPU seconds."""

    memory_bytes: int = 1 << 30
    """Memory beyond what the preloaded libraries take."""

    processes: int = 32
    """Processes and threads alive at one time."""

    file_bytes: int = 64 << 20
    """Largest file."""

    disk_bytes: int = 256 << 20
    """Files of the work folder together; they live in memory."""

    files: int = 1024
    """Files and folders in the work folder."""

    output_bytes: int = 32 << 10
    """Characters kept of each output stream: the first half of it from the beginning."""

    def __post_init__(self) -> None:
        """Reject limits under which nothing could run."""
        for name, value in asdict(self).items():
            if not value > 0:
                raise InvalidInputError(
                    f"limits.{name} must be above 0, got {value}; leave it out for the default"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A Python program to run in the sandbox."""

    code: str
    """Source text; runs as ``__main__`` in a folder of its own, where ``input`` holds the data."""

    public: Path | None = None
    """Folder shown to it, read-only, as ``input``."""

    collect: str = "submission.csv"
    """Name of the file that is taken out of the work folder afterwards."""

    seed: int = 0
    """Seed of ``random`` and of NumPy's global generator."""

    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Reject programs that no sandbox could take."""
        if "/" in self.collect or self.collect in ("", ".", ".."):
            raise InvalidInputError(
                f"collect must be a plain file name, got {self.collect!r}; use 'submission.csv'"
            )
        if not 0 <= self.seed < 1 << 32:
            raise InvalidInputError(f"seed must be in [0, 2^32), got {self.seed}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """What came of a program. A failure of the sandbox itself is never one of these.

    An execution that could not be made raises ``InfrastructureError``, or is None in a list.
    """

    status: Status
    """How it ended."""

    error_type: str | None = None
    """Name of the exception or signal that ended it."""

    message: str | None = None
    """The exception's text."""

    line: int | None = None
    """Line of the program, from 1, on which it failed."""

    stdout: str = ""
    stderr: str = ""

    collected: bytes | None = None
    """The asked-for file, None if there is none."""

    collect_problem: str | None = None
    """Why the file that is there was not taken."""

    seconds: float = 0.0
    """Wall-clock seconds from the fork to the end."""

    cpu_seconds: float = 0.0
    """CPU seconds of all its processes."""

    peak_memory_bytes: int = 0
    """Largest memory of all its processes together, as sampled every 20 ms; shared pages once."""

    level: Level = "bubblewrap"
    """The wall that was around it."""

    attempts: int = 1
    """Times it was started; more than 1 after failures of the sandbox."""
