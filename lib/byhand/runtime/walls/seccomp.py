"""Calls to the kernel that a rank of a sandbox may not make: what no limit and no wall would hold.

Memory that is counted nowhere: files in memory and System V segments; shared memory without a file,
which stays when its pages are let go; what the kernel keeps for asynchronous requests; pages given
to a pipe; sockets' buffers larger than usual. Keys: a session's keyring is inherited through every
namespace. Such a call fails with ENOSYS, as on a kernel that has none; sockets of every kind are
open, so that DataLoader's workers start.

The filter is a program for the kernel's packet filter: struct sock_filter {code, jt, jf, k}, read
on each call with the call's number, architecture and arguments at hand. Source: seccomp(2), and the
numbers in asm/unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where each is found; an argument takes 8 bytes
_ALLOW, _NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | errno.ENOSYS
_OTHER_ABI = 0x40000000  # x32's numbers on x86-64
_ALL, _SHARED_WITHOUT_A_FILE, _SOL_SOCKET, _BUFFERS = 0xFFFFFFFF, 0x21, 1, (7, 8)


@dataclass(frozen=True)
class Calls:
    """One architecture's name, and its numbers for calls."""

    architecture: int
    keys: tuple[int, ...]  # add_key, request_key, keyctl
    memory: tuple[int, ...]  # memfd_create, memfd_secret, shmget, io_uring_setup, io_setup and
    # vmsplice
    mmap: int
    setsockopt: int


MACHINES = {
    "x86_64": Calls(0xC000003E, (248, 249, 250), (319, 447, 29, 425, 206, 278), 9, 54),
    "aarch64": Calls(0xC00000B7, (217, 218, 219), (279, 447, 194, 425, 0, 75), 222, 208),
}


def forbid(memory_files: bool = False) -> None:
    """From now on this process and its children cannot make those calls.

    `memory_files`: those for memory are allowed.

    Raises:
        OSError: the kernel takes no filter, or none is known for this machine.
    """
    machine = platform.machine()
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"no filter of calls is known for {machine}")
    lines = _program(MACHINES[machine], memory_files)
    program = b"".join(struct.pack("HBBI", *line) for line in lines)
    text = ctypes.create_string_buffer(program, len(program))
    about = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, about, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"a filter of calls: {os.strerror(ctypes.get_errno())}")


def _program(calls: Calls, memory_files: bool) -> list[tuple[int, int, int, int]]:
    """The filter; a line is (code, how many lines to skip if so, if not, number)."""
    refuse = (_RETURN, 0, 0, _NO_SUCH_CALL)
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, calls.architecture), refuse]
    lines += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _OTHER_ABI), refuse]
    for number in calls.keys + (() if memory_files else calls.memory):
        lines += _rule((_NUMBER, _ALL, number))
    if not memory_files:
        flags = (_ARGUMENTS + 8 * 3, _SHARED_WITHOUT_A_FILE, _SHARED_WITHOUT_A_FILE)
        lines += _rule((_NUMBER, _ALL, calls.mmap), flags)
        level = (_ARGUMENTS + 8 * 1, _ALL, _SOL_SOCKET)
        for option in _BUFFERS:
            name = (_ARGUMENTS + 8 * 2, _ALL, option)
            lines += _rule((_NUMBER, _ALL, calls.setsockopt), level, name)
    return [*lines, (_RETURN, 0, 0, _ALLOW)]


def _rule(*conditions: tuple[int, int, int]) -> list[tuple[int, int, int, int]]:
    """Refuse a call of which all conditions (where to look, bits, their value) are true."""
    lines = []
    for left, (place, bits, value) in zip(range(len(conditions))[::-1], conditions, strict=True):
        lines += [(_LOAD, 0, 0, place), (_AND, 0, 0, bits), (_EQUAL, 0, 3 * left + 1, value)]
    return [*lines, (_RETURN, 0, 0, _NO_SUCH_CALL)]
