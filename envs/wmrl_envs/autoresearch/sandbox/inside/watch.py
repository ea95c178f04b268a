"""Watch over a run: what its processes use together, what they print, when they must end."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What the processes of a run use at one moment, all together."""

    processes: int
    memory_bytes: int
    cpu_s: float


def descendants(root: int) -> list[int]:
    """Return the living processes that descend from ``root``, itself left out."""
    children: dict[int, list[int]] = {}
    for entry in (path.name for path in Path("/proc").iterdir()):
        if entry.isdecimal():
            with suppress(OSError):  # it ended meanwhile
                children.setdefault(int(_stat(int(entry))[1]), []).append(int(entry))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def usage(keeper: int) -> Usage:
    """Return the use of a run from the process that keeps it."""
    memory, cpu, count = 0, 0.0, 0
    for pid in descendants(keeper):
        with suppress(OSError):  # it ended meanwhile
            fields = _stat(pid)
            count += fields[0] != "Z"
            cpu += sum(int(value) for value in fields[11:15]) / _TICKS
            memory += memory_of(pid)
    return Usage(processes=count, memory_bytes=memory, cpu_s=cpu)


def kill(keeper: int, first: int) -> None:
    """Kill every process of a run; returns when none is left or the keeper has seen them end."""
    if first != keeper:  # the first process of a namespace takes all others with it
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
    while left := [pid for pid in descendants(keeper) if _stat_or_zombie(pid) != "Z"]:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/pid/stat after the name: state, parent, ..."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text[text.rindex(")") + 2 :].split()


def _stat_or_zombie(pid: int) -> str:
    try:
        return _stat(pid)[0]
    except OSError:
        return "Z"


def memory_of(pid: int) -> int:
    """Return a process's proportional share of the memory it maps: shared pages count once."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


class Output:
    """What a program printed: the beginning and the end of it, bounded whatever it prints."""

    def __init__(self, limit: int) -> None:
        self._limit, self._total = max(2, limit), 0
        self._head, self._tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        """Take in what was read."""
        self._total += len(data)
        room = self._limit // 2 - len(self._head)
        self._head += data[: max(0, room)]
        self._tail += data[max(0, room) :]
        del self._tail[: max(0, len(self._tail) - self._limit // 2)]

    def text(self) -> str:
        """Return the text, with a mark where bytes were left out."""
        left_out = self._total - len(self._head) - len(self._tail)
        middle = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return bytes(self._head + middle + self._tail).decode("utf-8", errors="replace")
