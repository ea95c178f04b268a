"""Linux calls that the standard library of Python 3.11 lacks: namespaces, mounts, prctl, seccomp.

Every function raises ``OSError`` with the kernel's reason; none falls back to something weaker.
"""

import ctypes
import os
import platform
import struct

CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
_CLONE_NEW_ANY = 0x7E02_0080  # user, pid, net, mount, uts, ipc, cgroup and time namespaces

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
_MNT_DETACH = 2
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x4_0000

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_LAST_CAPABILITY = 40

_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move this process (its future children, for process ids) into new namespaces."""
    _checked(_LIBC.unshare(flags), f"unshare({flags:#x})")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Attach a file system, or a part of one, as the system call of that name does."""
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags))
    _checked(_LIBC.mount(*arguments, data.encode()), f"mount {kind or 'bind'} on {target}")


def mount_tmpfs(target: str, *, size_bytes: int, inodes: int) -> None:
    """Mount an empty memory file system that can hold no more than the given bytes and files."""
    options = f"size={size_bytes},nr_inodes={inodes},mode=755"
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options)


def mount_proc() -> None:
    """Show the processes of this process namespace, and no others, at ``/proc``.

    The kernel permits it only where the ``/proc`` before it has no part covered.
    """
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def uncover_proc() -> None:
    """Take off what covers parts of ``/proc`` in this mount namespace."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:  # noqa: PTH123
        covers = [line.split()[1] for line in mounts if line.split()[1].startswith("/proc/")]
    for target in reversed(covers):
        _checked(_LIBC.umount2(target.encode(), _MNT_DETACH), f"unmount {target}")


def bind(source: str, target: str) -> None:
    """Show ``source`` at ``target``."""
    mount(source, target, "", MS_BIND)


def make_read_only(target: str) -> None:
    """Let nothing be written below a mount point of this namespace."""
    mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def make_mounts_private() -> None:
    """Keep later mounts of this namespace from reaching any other."""
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def _prctl(option: int, *values: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _checked(_LIBC.prctl(option, *padded), f"prctl({option})")


def set_dumpable(*, allowed: bool) -> None:
    """Say whether processes of the same user may trace this one and read its memory."""
    _prctl(_PR_SET_DUMPABLE, int(allowed))


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def drop_capabilities() -> None:
    """Give up every capability for good, also across exec of a set-uid file."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(_LAST_CAPABILITY + 1):
        if _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # unprivileged already: there is no bounding set to narrow
    header = struct.pack("Ii", 0x2008_0522, 0)  # version 3, this process
    _checked(_LIBC.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")


_DENIED = {
    "x86_64": (
        29, 64, 68, 101, 103, 135, 155, 161, 163, 164, 165, 166, 167, 168, 169, 170, 171, 175, 176,
        179, 227, 246, 248, 249, 250, 272, 298, 300, 303, 304, 308, 310, 311, 312, 313, 319, 321,
        323, 425, 428, 429, 430, 431, 432, 433, 438, 442, 447,
    ),
    "aarch64": (
        39, 40, 41, 51, 60, 89, 92, 97, 104, 105, 106, 112, 116, 117, 142, 161, 162, 170, 186, 190,
        194, 217, 218, 219, 224, 225, 241, 262, 264, 265, 268, 270, 271, 272, 273, 279, 280, 282,
        425, 428, 429, 430, 431, 432, 433, 438, 442, 447,
    ),
}  # fmt: skip
"""System calls no data-science program needs: tracing, kernel keys, modules and mounts, namespaces,
memory that no process's size shows (memfd, System V shared memory), io_uring, bpf, clock setting."""

_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE3 = 435
_AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_X32 = 0x4000_0000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


def _filter(machine: str, *, internet: bool) -> list[tuple[int, int, int, int]]:
    """Return the BPF program: instruction, jump if true, jump if false, operand."""
    families = (_AF_UNIX, _AF_INET, _AF_INET6) if internet else (_AF_UNIX,)
    program = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),  # libc falls back to clone, whose flags can be read
        (_EQUAL, 0, 4, _CLONE[machine]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_ANY_BIT, 0, 1, _CLONE_NEW_ANY),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, len(families) + 3, _SOCKET[machine]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        *((_EQUAL, len(families) - at, 0, family) for at, family in enumerate(families)),
        (_RETURN, 0, 0, _ERRNO | _EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for number in _DENIED[machine]:
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def install_seccomp(*, internet: bool) -> None:
    """Refuse the denied system calls from now on, in this process and its children.

    Args:
        internet: Whether internet sockets may be made; true where a network namespace confines
            them to the loopback device.
    """
    machine = platform.machine()
    if machine not in _DENIED:
        raise OSError(_ENOSYS, f"no system-call table for {machine}")
    code = [struct.pack("HBBI", *step) for step in _filter(machine, internet=internet)]
    buffer = ctypes.create_string_buffer(b"".join(code))
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    )
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(header))
