"""The worker inside the wall: imports once, then runs one program after another in forked jails.

It speaks lines of JSON on its standard input and output. Programs never hold these.
"""

import base64
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO, TypedDict

from wmrl_envs.autoresearch.sandbox.inside import jail, linux, watch
from wmrl_envs.autoresearch.sandbox.inside.program import (
    MEMORY_EXIT,
    LimitSpec,
    RunSpec,
    WallSpec,
    note_starting_size,
)

_TICK_S = 0.02
_CHUNK = 1 << 16
_FOLDER = "/task"


class Answer(TypedDict):
    """What the worker answers for one run."""

    status: str
    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    collected: str | None
    collect_problem: str | None


@dataclass(kw_only=True, slots=True)
class _Run:
    """A run in progress."""

    keeper: int
    channel: socket.socket
    outputs: dict[int, watch.Output]
    first: int | None = None
    folder: int | None = None
    wait_status: int | None = None
    verdict: str | None = None
    peak: int = 0
    cpu_s: float = 0.0
    started: float = field(default_factory=time.monotonic)


def main() -> None:
    """Import what was asked for, say so, then serve until the input ends."""
    control = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    os.dup2(2, 1)  # a library that prints while it is imported must not speak for the worker
    wall: WallSpec = json.loads(_line(control.fileno()))
    for name in wall["preload"]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    note_starting_size()
    _BASE["memory"] = watch.memory_of(os.getpid())
    if wall["level"] == "bubblewrap" and os.geteuid() == 0:
        linux.uncover_proc()  # so that every run may have a /proc of its own, which shows only it
    linux.set_dumpable(allowed=os.geteuid() != 0)
    _say(answers, {"ready": True})
    while request := _line(control.fileno()):
        spec: RunSpec = json.loads(request)
        _say(answers, _serve(spec, wall, control.fileno()))


def _say(answers: TextIO, message: object) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _line(handle: int) -> bytes:
    """Return the next line, empty at the end of input."""
    parts = bytearray()
    while not parts.endswith(b"\n"):
        data = os.read(handle, _CHUNK)
        if not data:
            return b""
        parts += data
    return bytes(parts)


def _serve(spec: RunSpec, wall: WallSpec, control: int) -> Answer:
    in_wall = wall["level"] == "bubblewrap"
    folder = _FOLDER if in_wall else tempfile.mkdtemp(prefix="wmrl-run-")
    try:
        return _perform(spec, wall, folder, control)
    finally:
        if not in_wall:
            shutil.rmtree(folder, ignore_errors=True)


def _perform(spec: RunSpec, wall: WallSpec, folder: str, control: int) -> Answer:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    readers, writers = zip(os.pipe(), os.pipe(), strict=True)
    keeper, channel = jail.start(spec, wall, folder, (writers[0], writers[1]))
    for handle in writers:
        os.close(handle)
    limit = spec["limits"]["output_bytes"]
    run = _Run(
        keeper=keeper,
        channel=socket.socket(fileno=channel),
        outputs={handle: watch.Output(limit) for handle in readers},
    )
    try:
        _follow(run, spec["limits"], control)
        _drain(run)
        collected, problem = _collect(run, spec)
    finally:
        _end(run)
        for handle in readers:
            os.close(handle)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    reaped = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    texts = [output.text() for output in run.outputs.values()]
    return {
        "status": _status(run),
        "exit_code": os.waitstatus_to_exitcode(run.wait_status or 0),
        "stdout": texts[0],
        "stderr": texts[1],
        "seconds": time.monotonic() - run.started,
        # The kernel does not account for processes that died with their namespace: sampled.
        "cpu_seconds": max(reaped, run.cpu_s),
        "peak_memory_bytes": run.peak,
        "collected": None if collected is None else base64.b64encode(collected).decode("ascii"),
        "collect_problem": problem,
    }


def _follow(run: _Run, limits: LimitSpec, control: int) -> None:
    """Read output and enforce limits until the agent ended or was stopped."""
    poll = select.poll()
    for handle in (*run.outputs, run.channel.fileno()):
        poll.register(handle, select.POLLIN)
    poll.register(control, 0)  # only its end
    checked = 0.0
    while run.wait_status is None and run.verdict is None:
        for handle, event in poll.poll(_TICK_S * 1000):
            if handle == control:
                _end(run)
                sys.exit(0)
            elif handle == run.channel.fileno():
                _hear(run)
            else:
                data = os.read(handle, _CHUNK)
                run.outputs[handle].add(data)
                if event & select.POLLHUP and not data:
                    poll.unregister(handle)
        now = time.monotonic()
        if now - checked >= _TICK_S:
            checked = now
            run.verdict = _broken_limit(run, limits, now)


def _hear(run: _Run) -> None:
    """Take in one message of the keeper's."""
    data, handles, _, _ = socket.recv_fds(run.channel, 64, 1)
    if handles:
        run.folder = handles[0]
    elif data.startswith(b"first"):
        run.first = struct.unpack("i", data[5:])[0]
    elif data.startswith(b"ended"):
        run.wait_status = struct.unpack("i", data[5:])[0]
    else:
        run.verdict = "infrastructure"  # the keeper ended without a word about the agent


def _broken_limit(run: _Run, limits: LimitSpec, now: float) -> str | None:
    used = watch.usage(run.keeper)
    run.peak, run.cpu_s = max(run.peak, used.memory_bytes), max(run.cpu_s, used.cpu_s)
    if used.memory_bytes > limits["memory_bytes"] + _BASE["memory"]:
        return "memory"
    if used.cpu_s > limits["cpu_s"]:
        return "cpu"
    if used.processes > limits["processes"] + 2:
        return "processes"
    if now - run.started > limits["wall_s"]:
        return "timeout"
    return None


_BASE = {"memory": 0}


def _status(run: _Run) -> str:
    if run.verdict is not None:
        return run.verdict
    code = os.waitstatus_to_exitcode(run.wait_status or 0)
    names = {0: "ok", MEMORY_EXIT: "memory", -signal.SIGXCPU: "cpu", -signal.SIGXFSZ: "disk"}
    return names.get(code, "killed" if code < 0 else "error")


def _drain(run: _Run) -> None:
    """Stop what is left of the run, then read what it had printed."""
    if run.first is not None:
        watch.kill(run.keeper, run.first)
    for handle, output in run.outputs.items():
        os.set_blocking(handle, False)
        with suppress(BlockingIOError):
            while data := os.read(handle, _CHUNK):
                output.add(data)


def _collect(run: _Run, spec: RunSpec) -> tuple[bytes | None, str | None]:
    """Return the asked-for file's bytes, read after every process of the run is dead."""
    if run.folder is None:
        return None, None
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(spec["collect"], flags, dir_fd=run.folder)
    except FileNotFoundError:
        return None, None
    except OSError as problem:
        return None, f"must be a regular file: {problem.strerror}"
    try:
        return _content(handle, spec["limits"]["file_bytes"])
    finally:
        os.close(handle)


def _content(handle: int, most_bytes: int) -> tuple[bytes | None, str | None]:
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        return None, "must be a regular file of one name"
    if about.st_size > most_bytes:
        return None, f"must be at most {most_bytes} bytes, got {about.st_size}"
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(), None


def _end(run: _Run) -> None:
    """Leave nothing of the run: processes, handles."""
    if run.first is not None:
        watch.kill(run.keeper, run.first)
    else:
        with suppress(ProcessLookupError):
            os.kill(run.keeper, signal.SIGKILL)
    run.channel.close()  # the unsafe level's keeper ends only now
    with suppress(ChildProcessError):
        os.waitpid(run.keeper, 0)
    if run.folder is not None:
        os.close(run.folder)
        run.folder = None
