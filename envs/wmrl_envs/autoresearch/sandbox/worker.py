"""A sandbox worker seen from outside: one walled process that runs programs one after another."""

import base64
import binascii
import json
import os
import selectors
import signal
import stat
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from wmrl_envs.autoresearch.sandbox.diagnosis import Diagnosis, diagnose
from wmrl_envs.autoresearch.sandbox.inside import watch
from wmrl_envs.autoresearch.sandbox.record import STATUSES, Execution, Program
from wmrl_envs.autoresearch.sandbox.wall import Wall
from wmrl_envs.errors import InfrastructureError, InvalidInputError

_START_TIMEOUT_S = 120.0
_GRACE_S = 20.0
_CHUNK = 1 << 16
_LONGEST_ANSWER = 1 << 28


class Worker:
    """One walled process; not safe for use by two threads at a time."""

    def __init__(self, wall: Wall, *, preload: tuple[str, ...]) -> None:
        """Start the process and wait for its imports.

        Raises:
            InfrastructureError: If it does not come up.
        """
        self._wall = wall
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the worker)
        self._process = subprocess.Popen(  # noqa: S603  (our own command)
            wall.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=wall.environment,
            cwd="/",
            start_new_session=True,
        )
        self._rest = bytearray()
        setting = {
            "level": wall.level,
            "preload": list(preload),
            "readable": list(wall.readable),
            "masked": list(wall.masked),
        }
        self._ask(setting, _START_TIMEOUT_S)

    def run(self, program: Program) -> Execution:
        """Run a program and return its record.

        Raises:
            InvalidInputError: If the program's public folder is not one the worker was built for.
            InfrastructureError: If the worker failed; it is of no further use then.
        """
        if program.public is not None and program.public not in self._wall.inputs:
            raise InvalidInputError(f"public must be a folder of this worker, got {program.public}")
        request = {
            "code": program.code,
            "seed": program.seed,
            "public": self._wall.inputs[program.public] if program.public else None,
            "collect": program.collect,
            "limits": asdict(program.limits),
        }
        answer = self._ask(request, program.limits.wall_s + _GRACE_S)
        if answer.get("status") not in STATUSES:
            raise InfrastructureError(f"the sandbox could not run the program: {self._complaint()}")
        return self._record(answer)

    def _record(self, answer: dict) -> Execution:
        failed = answer["status"] != "ok"
        found = diagnose(answer["stderr"], answer["exit_code"]) if failed else Diagnosis()
        if answer["status"] not in ("ok", "error", "killed"):
            found = Diagnosis(error_type=_BROKEN[answer["status"]], line=found.line)
        packed = answer["collected"]
        try:
            collected = None if packed is None else base64.b64decode(packed, validate=True)
        except binascii.Error as error:
            raise InfrastructureError(f"the sandbox sent a damaged file: {error}") from error
        return Execution(
            status=answer["status"],
            error_type=found.error_type,
            message=found.message,
            line=found.line,
            stdout=answer["stdout"],
            stderr=answer["stderr"],
            collected=collected,
            collect_problem=answer["collect_problem"],
            seconds=answer["seconds"],
            cpu_seconds=answer["cpu_seconds"],
            peak_memory_bytes=answer["peak_memory_bytes"],
            level=self._wall.level,
        )

    def _ask(self, message: object, timeout_s: float) -> dict:
        """Send a line and return the line that answers it."""
        if self._process.stdin is None or self._process.stdout is None:
            raise InfrastructureError("the sandbox worker has no pipes")
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise InfrastructureError(f"the sandbox worker died: {self._complaint()}") from error
        line = self._line(self._process.stdout.fileno(), time.monotonic() + timeout_s)
        return json.loads(line)

    def _line(self, handle: int, deadline: float) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise InfrastructureError("the sandbox worker did not answer in time")
                data = os.read(handle, _CHUNK)
                if not data or len(self._rest) > _LONGEST_ANSWER:
                    raise InfrastructureError(f"the sandbox worker died: {self._complaint()}")
                self._rest += data
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        return line

    def _complaint(self) -> str:
        """Return the end of what the worker printed."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 1000))
        text = self._log.read().decode("utf-8", errors="replace").strip()
        return text.replace("\n", " | ") or f"exit code {self._process.poll()}"

    def kill(self) -> None:
        """End every process of the worker, whatever it is doing."""
        # The wall's own process is not the last: what is behind it would outlive it.
        for pid in (*watch.descendants(self._process.pid), self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the worker and give back what it holds."""
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # a request that the dead worker never read
                    stream.close()
        self._log.close()


_BROKEN = {
    "timeout": "WallClockLimit",
    "cpu": "CpuLimit",
    "memory": "MemoryLimit",
    "processes": "ProcessLimit",
    "disk": "FileSizeLimit",
}
"""Names under which a broken limit appears as the error type."""


def check_public(folder: Path) -> Path:
    """Return the folder's real path after checking that programs will be able to read it.

    Raises:
        InvalidInputError: If it is missing, or root runs the sandbox and the files are root's alone.
    """
    real = folder.resolve()
    if not real.is_dir():
        raise InvalidInputError(f"public must be a folder, got {str(folder)!r}")
    if os.geteuid() != 0:
        return real
    for path in (real, *real.rglob("*")):
        needed = stat.S_IROTH | stat.S_IXOTH if path.is_dir() else stat.S_IROTH
        if path.stat().st_mode & needed != needed:
            raise InvalidInputError(
                f"public files must be readable by every user, got {path} with mode "
                f"{stat.filemode(path.stat().st_mode)}; run `chmod -R o+rX {folder}`"
            )
    return real
