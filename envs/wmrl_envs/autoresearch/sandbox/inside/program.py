"""The agent's process: every right given up, limits set, then its program run as ``__main__``."""

import contextlib
import gc
import os
import random
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import TypedDict

from wmrl_envs.autoresearch.sandbox.inside import landlock, linux

MEMORY_EXIT = 77
"""Exit code of a program that ended by running out of memory."""

_FAILURE_EXIT = 1
_LIBRARY_SLACK_BYTES = 512 << 20  # address space for libraries the program imports itself


class LimitSpec(TypedDict):
    """Limits of one run, as they travel to the sandbox."""

    wall_s: float
    cpu_s: float
    memory_bytes: int
    processes: int
    file_bytes: int
    disk_bytes: int
    files: int
    output_bytes: int


class RunSpec(TypedDict):
    """One run, as it travels to the sandbox."""

    code: str
    seed: int
    public: str | None
    collect: str
    limits: LimitSpec


class WallSpec(TypedDict):
    """The wall around every run of a worker, as it travels to the sandbox."""

    level: str
    preload: list[str]
    readable: list[str]
    masked: list[str]


def run_agent(spec: RunSpec, wall: WallSpec, folder: str, outputs: tuple[int, int]) -> None:
    """Confine this process and run the program in it; never returns."""
    code = _FAILURE_EXIT
    try:
        _confine(spec["limits"], wall, folder, outputs)
        code = _run(spec["code"], spec["seed"])
    except BaseException:  # noqa: BLE001  (a forked child must end here, whatever the program threw)
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _confine(limits: LimitSpec, wall: WallSpec, folder: str, outputs: tuple[int, int]) -> None:
    os.setsid()
    silence = os.open("/dev/null", os.O_RDONLY)
    os.dup2(silence, 0)
    for target, source in enumerate(outputs, start=1):
        os.dup2(source, target)
    os.closerange(3, 4096)
    os.chdir(folder)
    os.environ.update({"HOME": folder, "TMPDIR": folder, "PWD": folder})
    _limit(limits)
    linux.set_dumpable(allowed=True)  # so that the sandbox may read how much memory this takes
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    linux.drop_capabilities()
    if wall["level"] == "landlock":
        readable = [path for path in wall["readable"] if os.path.exists(path)]  # noqa: PTH110
        landlock.restrict([*readable, "/dev", "/proc"], [folder, "/dev/null"])
    linux.install_seccomp(internet=wall["level"] != "rlimits")


def _limit(limits: LimitSpec) -> None:
    data, space = _sizes()
    memory = limits["memory_bytes"]
    cpu = int(limits["cpu_s"]) + 1
    for kind, value in (
        (resource.RLIMIT_DATA, data + memory),
        (resource.RLIMIT_AS, space + memory + _LIBRARY_SLACK_BYTES),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NPROC, limits["processes"] + 2),  # the run's own two included
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_STACK, 64 << 20),
    ):
        _, ceiling = resource.getrlimit(kind)
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(kind, (bound, bound))


def _sizes() -> tuple[int, int]:
    """Return bytes of private data and of address space that the preloaded imports take already."""
    return _STARTING["data"], _STARTING["space"]


_STARTING = {"data": 0, "space": 0}


def note_starting_size() -> None:
    """Remember how large this process is after its imports; forked programs may add to that."""
    sizes = {}
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        for line in status:
            name, _, value = line.partition(":")
            sizes[name] = value
    _STARTING["data"] = int(sizes["VmData"].split()[0]) << 10
    _STARTING["space"] = int(sizes["VmSize"].split()[0]) << 10


def _run(code: str, seed: int) -> int:
    """Run the program and return its exit code; a failure's traceback shows its own lines only."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    sys.argv = ["main.py"]
    sys.path.insert(0, str(Path.cwd()))
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    gc.enable()
    main = sys.modules["__main__"]
    main.__dict__.clear()
    main.__dict__.update(
        {"__name__": "__main__", "__builtins__": __builtins__, "__file__": "main.py"}
    )
    try:
        exec(compile(code, "main.py", "exec"), main.__dict__)  # noqa: S102  (that is the sandbox's purpose)
    except SystemExit as stop:
        return _exit_code(stop)
    except BaseException as failure:  # noqa: BLE001  (whatever the program raises is its result)
        # The first frame is this function's: it would name a file the agent never wrote.
        shown = failure.__traceback__.tb_next if failure.__traceback__ else None
        traceback.print_exception(type(failure), failure, shown)
        return MEMORY_EXIT if isinstance(failure, MemoryError) else _FAILURE_EXIT
    return 0


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)  # noqa: T201  (as the interpreter does)
    return _FAILURE_EXIT
