"""A run's own namespaces and file system, made afresh for every program and gone with it.

The first process of a process namespace cannot be signalled from inside it, and when it ends the
kernel kills all others: whatever a program leaves behind dies with its run.
"""

import os
import shutil
import socket
import struct
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from wmrl_envs.autoresearch.sandbox.inside import linux
from wmrl_envs.autoresearch.sandbox.inside.program import RunSpec, WallSpec, run_agent

_ROOT_MAP = "0 2099999999 1"
"""A user that owns nothing: limits on processes are void for root and for root's identity."""

_SMALL_BYTES, _SMALL_FILES = 16 << 20, 256


def start(spec: RunSpec, wall: WallSpec, folder: str, outputs: tuple[int, int]) -> tuple[int, int]:
    """Fork the keeper of a new run and return its process id and the socket it reports on.

    The keeper reports the process id of the run's first process, then a handle of the run's
    folder, then the agent's wait status. In the unsafe level it runs the agent without namespaces.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    work = _supervise if wall["level"] == "rlimits" else _keep
    keeper = _fork(partial(work, spec, wall, folder, outputs, theirs), ours)
    theirs.close()
    if wall["level"] != "rlimits":
        _map_user(ours, keeper)
    return keeper, ours.detach()


def _fork(job: Callable[[], None], not_for_child: socket.socket | None = None) -> int:
    """Run ``job`` in a forked child, whose failure goes to the worker's log, and return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if not_for_child is not None:
            not_for_child.close()
        job()
        code = 0
    except BaseException:  # noqa: BLE001  (a forked child must not return into the worker's code)
        traceback.print_exc()
    finally:
        os._exit(code)


def _map_user(channel: socket.socket, keeper: int) -> None:
    if channel.recv(64) != b"unshared":
        return  # the keeper failed and said why on the way to its end
    user, group = os.geteuid(), os.getegid()
    Path(f"/proc/{keeper}/setgroups").write_text("deny", encoding="ascii")
    Path(f"/proc/{keeper}/uid_map").write_text(
        f"0 {user} 1" if user else _ROOT_MAP, encoding="ascii"
    )
    Path(f"/proc/{keeper}/gid_map").write_text(
        f"0 {group} 1" if user else _ROOT_MAP, encoding="ascii"
    )
    channel.send(b"mapped")


def _keep(
    spec: RunSpec, wall: WallSpec, folder: str, outputs: tuple[int, int], channel: socket.socket
) -> None:
    """Enter new namespaces, fork the run's first process, and outlive it."""
    flags = linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC
    linux.unshare(flags | (linux.CLONE_NEWNET if wall["level"] == "landlock" else 0))
    channel.send(b"unshared")
    channel.recv(64)
    handles = {path: os.open(path, os.O_PATH) for path in _hidden_from_others(wall, spec)}
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    first = _fork(partial(_live, spec, wall, folder, outputs, channel, handles))
    channel.send(b"first" + struct.pack("i", first))
    os.waitpid(first, 0)


def _live(
    spec: RunSpec,
    wall: WallSpec,
    folder: str,
    outputs: tuple[int, int],
    channel: socket.socket,
    handles: dict[str, int],
) -> None:
    linux.set_dumpable(allowed=False)
    _furnish(spec, wall, folder, handles)
    _supervise(spec, wall, folder, outputs, channel)


def _hidden_from_others(wall: WallSpec, spec: RunSpec) -> list[str]:
    """Return readable paths below a folder that only its owner may enter."""
    if wall["level"] != "landlock":
        return []
    paths = [*wall["readable"], *([spec["public"]] if spec["public"] else [])]
    return [path for path in paths if _closed_ancestor(path) is not None]


def _closed_ancestor(path: str) -> Path | None:
    for ancestor in reversed(Path(path).parents):
        if ancestor.exists() and not ancestor.stat().st_mode & 0o001:
            return ancestor
    return None


def _furnish(spec: RunSpec, wall: WallSpec, folder: str, handles: dict[str, int]) -> None:
    """Build what the program may see: its folder, its input, and nothing of other runs."""
    linux.make_mounts_private()
    limits = spec["limits"]
    covered = {str(_closed_ancestor(path)) for path in handles}
    for ancestor in covered:
        linux.mount_tmpfs(ancestor, size_bytes=_SMALL_BYTES, inodes=4096)
    for path, handle in handles.items():
        _bind_handle(handle, path)
    source = os.open(spec["public"], os.O_PATH) if spec["public"] else None
    linux.mount_tmpfs(folder, size_bytes=limits["disk_bytes"], inodes=limits["files"])
    if source is not None:
        _bind_handle(source, f"{folder}/input")
    _cover(wall, folder)


def _cover(wall: WallSpec, folder: str) -> None:
    """Cover what no program may see: packaged data, shared folders, other inputs, processes."""
    for path in wall["masked"]:
        if Path(path).is_dir():
            linux.mount_tmpfs(path, size_bytes=4096, inodes=2)
        elif Path(path).exists():
            linux.bind("/dev/null", path)
    for path in ("/tmp", "/dev/shm"):  # noqa: S108  (mount points of the sandbox)
        if Path(path).is_dir() and not folder.startswith(f"{path}/"):
            linux.mount_tmpfs(path, size_bytes=_SMALL_BYTES, inodes=_SMALL_FILES)
            Path(path).chmod(0o1777)
    if Path("/inputs").is_dir():
        linux.mount_tmpfs("/inputs", size_bytes=4096, inodes=2)
        linux.make_read_only("/inputs")
    try:
        linux.mount_proc()
    except PermissionError:
        # Inside some containers the kernel forbids it. The wall's own /proc, which shows the
        # worker's processes but lets nobody look into them, stays; behind Landlock there is none.
        if wall["level"] != "bubblewrap":
            raise


def _bind_handle(handle: int, path: str) -> None:
    if Path(f"/proc/self/fd/{handle}").is_dir():
        Path(path).mkdir(parents=True, exist_ok=True)
    else:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    linux.bind(f"/proc/self/fd/{handle}", path)
    os.close(handle)


def _supervise(
    spec: RunSpec, wall: WallSpec, folder: str, outputs: tuple[int, int], channel: socket.socket
) -> None:
    """Start the agent, adopt its orphans, report its end."""
    if wall["level"] == "rlimits":
        linux.adopt_orphans()
        channel.send(b"first" + struct.pack("i", os.getpid()))
        if spec["public"]:
            shutil.copytree(spec["public"], f"{folder}/input")
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with open(f"{folder}/main.py", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(spec["code"])
    socket.send_fds(channel, [b"folder"], [root])
    agent = os.fork()
    if agent == 0:
        run_agent(spec, wall, folder, outputs)
    for handle in outputs:
        os.close(handle)
    pid, status = 0, 0
    while pid != agent:
        pid, status = os.waitpid(-1, 0)
    channel.send(b"ended" + struct.pack("i", status))
    if wall["level"] == "rlimits":
        channel.recv(1)  # stay the parent of its orphans until the worker has killed them
