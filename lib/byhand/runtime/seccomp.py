"""Calls to the kernel that a rank of a sandbox may not make: memory that no limit counts.

A limit on a process's memory holds what is mapped into it. What a program writes into a memory
file, or into a System V segment that it lets go of, is mapped nowhere and counted nowhere: a few
lines would fill the machine. Such a call fails with ENOSYS, as on a kernel that has none.

The filter is a program for the kernel's packet filter: struct sock_filter {code, jt, jf, k}, read
on each call with the call's number and architecture at hand. Source: seccomp(2), and the numbers
in asm/unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_OTHER_ABI = 0x40000000  # x32's numbers on x86-64
# memfd_create, memfd_secret, shmget, io_uring_setup
_FORBIDDEN = {
    "x86_64": (0xC000003E, (319, 447, 29, 425)),
    "aarch64": (0xC00000B7, (279, 447, 194, 425)),
}


def forbid() -> bool:
    """From now on this process and its children cannot make those calls. False: no filter here."""
    if platform.machine() not in _FORBIDDEN:
        return False
    program = _program(*_FORBIDDEN[platform.machine()])
    text = ctypes.create_string_buffer(program, len(program))
    about = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return libc.prctl(_PR_SET_SECCOMP, _FILTER, about, 0, 0) == 0


def _program(architecture: int, numbers: tuple[int, ...]) -> bytes:
    """Another architecture's call, or one of `numbers`, fails; every other one goes on."""
    tests = [(_EQUAL, number) for number in numbers] + [(_AT_LEAST, _OTHER_ABI)]
    fail = len(tests) + 1  # lines from the first test to the last line
    lines = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 0, fail + 1, architecture)]
    lines.append((_LOAD, 0, 0, _NUMBER_AT))
    lines += [(code, fail - 1 - at, 0, number) for at, (code, number) in enumerate(tests)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
