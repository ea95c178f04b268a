"""Landlock: file access narrowed, for good, to a list of folders."""

import ctypes
import os
import struct
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_DIR = 1, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | 2 | _READ_FILE | 1 << 14 | 1 << 15  # 2 writes, 14 truncates, 15 ioctl
_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = _LIBC.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return result


def version() -> int:
    """Return the kernel's Landlock version, 0 where it has none."""
    return max(0, _LIBC.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def _rights(abi: int) -> int:
    """Return every file right that this version can handle."""
    count = 13 + (abi >= 2) + (abi >= 3) + (abi >= 5)  # rights were added in turn
    return (1 << count) - 1


def restrict(readable: Sequence[str], writable: Sequence[str]) -> None:
    """Deny this process and its children every file outside the two lists.

    Call it after ``drop_capabilities``, which sets the no-new-privileges flag it needs.
    """
    abi = version()
    if not abi:
        raise OSError("landlock is not available in this kernel")
    handled = _rights(abi)
    attributes = ctypes.create_string_buffer(struct.pack("Q", handled))
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(8), 0)
    for paths, rights in ((readable, _READ), (writable, handled & ~_EXECUTE)):
        for path in paths:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = rights & handled if os.path.isdir(path) else rights & handled & _ON_FILES  # noqa: PTH112
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, handle))
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
            os.close(handle)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
