"""Diagnosis: the error type, message and line in what a failed program printed."""

import re
import signal
from dataclasses import dataclass

_LINE = re.compile(r'^ *File "main\.py", line (\d+)', re.MULTILINE)
_RAISED = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Iteration)?)(?:: (.*))?$"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What ended a program, as far as its output tells."""

    error_type: str | None = None
    message: str | None = None
    line: int | None = None


def diagnose(stderr: str, exit_code: int) -> Diagnosis:
    """Return what the last traceback in ``stderr`` says; without one, the signal or exit code.

    The text is the program's own, so a program may lie here; nothing that counts relies on it.
    """
    start = stderr.rfind("Traceback (most recent call last):")
    text = stderr[start:] if start >= 0 else stderr
    lines = [int(number) for number in _LINE.findall(text)]
    if start >= 0 or lines:
        for candidate in text.splitlines():
            found = _RAISED.match(candidate)
            if found and not candidate.startswith("Traceback"):
                message = (found.group(2) or "")[:500]
                return Diagnosis(
                    error_type=found.group(1), message=message, line=lines[-1] if lines else None
                )
    if exit_code < 0:
        return Diagnosis(error_type=signal.Signals(-exit_code).name, message="killed by a signal")
    return Diagnosis(error_type="SystemExit", message=f"exit code {exit_code}")
