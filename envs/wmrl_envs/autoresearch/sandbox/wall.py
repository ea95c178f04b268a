"""The wall around a worker: which kinds this machine can build, and the command that builds one."""

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wmrl_envs.autoresearch.sandbox.inside import landlock, linux
from wmrl_envs.autoresearch.sandbox.record import LEVELS, Level
from wmrl_envs.errors import DependencyNotInstalledError, InvalidInputError

SOURCE = "/wmrl"
"""Where the worker's own code is seen inside."""

_INSIDE = "wmrl_envs/autoresearch/sandbox/inside"
_PROBE_TIMEOUT_S = 20.0
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime", "/etc/alternatives")
_PROCESSORS = "/sys/fs/cgroup"  # how many processors there are, for joblib
_KEPT_AS_ROOT = ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_KILL")
_START = f"import sys; sys.path.insert(0, {SOURCE!r}); import wmrl_envs.autoresearch.sandbox.inside.server as s; s.main()"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wall:
    """How a worker is started and what it is told of its surroundings."""

    level: Level
    command: tuple[str, ...]
    environment: dict[str, str]
    readable: tuple[str, ...]
    masked: tuple[str, ...]
    inputs: dict[Path, str]
    """Public folders and where the worker sees them."""


def choose_level(wanted: Level | None = None, *, unsafe: bool = False) -> Level:
    """Return the strongest wall this machine can build, or the wanted one.

    Args:
        wanted: The level to insist on.
        unsafe: Whether resource limits alone will do. They confine honest mistakes, not attacks.

    Raises:
        InvalidInputError: If the unsafe level is wanted without ``unsafe``.
        DependencyNotInstalledError: If no level that is allowed works here.
    """
    if wanted == "rlimits" and not unsafe:
        raise InvalidInputError(
            "sandbox level 'rlimits' must be asked for together with unsafe=True: it neither hides "
            "files nor holds back the network"
        )
    if wanted is not None and wanted not in LEVELS:
        raise InvalidInputError(f"level must be one of {', '.join(LEVELS)}, got {wanted!r}")
    reasons = []
    for level in [wanted] if wanted else LEVELS:
        if level == "rlimits":
            if unsafe:
                return level
            continue
        reason = _why_not_bubblewrap() if level == "bubblewrap" else _why_not_landlock()
        if reason is None:
            return level
        reasons.append(reason)
    raise DependencyNotInstalledError(
        f"no sandbox works here ({'; '.join(reasons)}); apt-get install -y bubblewrap, or pass "
        "unsafe=True to run programs under resource limits alone"
    )


def _why_not_bubblewrap() -> str | None:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bubblewrap: bwrap is not installed"
    user = () if os.geteuid() == 0 else ("--unshare-user",)
    command = (bwrap, *user, "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "true")
    return _why_not("bubblewrap", command)


def _why_not_landlock() -> str | None:
    if landlock.version() == 0:
        return "landlock: the kernel has none"
    flags = linux.CLONE_NEWUSER | linux.CLONE_NEWNET | linux.CLONE_NEWPID | linux.CLONE_NEWNS
    call = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({flags}) != 0)"
    return _why_not("network namespace", (sys.executable, "-I", "-S", "-c", call))


def _why_not(name: str, command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  (a fixed command)
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{name}: the probe did not answer within {_PROBE_TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return None
    return f"{name}: {done.stderr.strip() or 'not permitted'}"


def python_folders() -> tuple[str, ...]:
    """Return the folders of this interpreter and its packages, system folders left out."""
    candidates = [sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()]
    real = [
        str(Path(path).resolve()) for path in (*candidates, Path(sys.executable).resolve().parent)
    ]
    found = dict.fromkeys(path for path in (*candidates, *real) if Path(path).is_dir())
    return tuple(path for path in found if not path.startswith(_SYSTEM))


def build_wall(level: Level, *, publics: Sequence[Path], hidden: Sequence[str]) -> Wall:
    """Return the wall for workers that serve programs over the given public folders.

    Args:
        level: Kind of wall.
        publics: Folders that programs may be shown.
        hidden: Paths relative to the package folder (files or folders) that appear empty: the data
            inside packages from which tasks' hidden answers were made.
    """
    packages = [Path(path) for path in site.getsitepackages()]
    masked = tuple(str(base / path) for base in packages for path in ("wmrl_envs", *hidden))
    readable = tuple(
        path
        for path in (*_SYSTEM, *_SETTINGS, _PROCESSORS, *python_folders())
        if Path(path).exists()
    )
    in_wall = level == "bubblewrap"
    inputs = {
        public: f"/inputs/{number}" if in_wall else str(public)
        for number, public in enumerate(publics)
    }
    root = str(Path(__file__).parents[3])
    python = (sys.executable, "-s", "-P", "-B", "-c")
    if in_wall:
        command = (*_bubblewrap(inputs), *python, _START)
    else:
        command = (*python, _START.replace(repr(SOURCE), repr(root)))
    return Wall(
        level=level,
        command=command,
        environment=_environment(),
        readable=readable,
        masked=masked,
        inputs=inputs,
    )


def _environment() -> dict[str, str]:
    """Return the whole environment of a program: nothing of the user's is in it."""
    one_thread = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
        "MPLBACKEND": "Agg",
        **{f"{name}_NUM_THREADS": "1" for name in one_thread},
    }


def _bubblewrap(inputs: dict[Path, str]) -> tuple[str, ...]:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise DependencyNotInstalledError(
            "bubblewrap must be installed; apt-get install -y bubblewrap"
        )
    arguments = [bwrap, "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", "sandbox", "--new-session"]
    if os.geteuid() == 0:
        arguments += ["--cap-drop", "ALL"]
        for capability in _KEPT_AS_ROOT:
            arguments += ["--cap-add", capability]
    else:
        arguments.append("--unshare-user")
    for path in _SYSTEM:
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            arguments += ["--ro-bind", path, path]
    for path in _SETTINGS:
        arguments += ["--ro-bind-try", path, path]
    inside = str(Path(__file__).parent / "inside")
    bound = {**{path: path for path in python_folders()}, inside: f"{SOURCE}/{_INSIDE}"}
    bound |= {str(public): seen for public, seen in inputs.items()}
    # bwrap makes missing parents for their owner only; programs run as another user.
    parents = {str(parent) for seen in bound.values() for parent in Path(seen).parents} - {"/"}
    for folder in sorted({*parents, "/task", "/tmp", "/inputs"}):  # noqa: S108
        arguments += ["--perms", "0755", "--dir", folder]
    for path, seen in bound.items():
        arguments += ["--ro-bind", path, seen]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
    return tuple(arguments)
