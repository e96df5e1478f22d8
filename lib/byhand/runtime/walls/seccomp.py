"""Calls to the kernel that a rank of a sandbox may not make: what no limit and no wall would hold.

Namespaces: in one of its own a rank might mount what it likes, and fill memory that way. Memory
files and System V segments: what is written there is mapped nowhere and counted nowhere. Keys: a
session's keyring is inherited through every namespace. Such a call fails with ENOSYS, as on a
kernel that has none; sockets of every kind are open, so that DataLoader's workers start.

The filter is a program for the kernel's packet filter: struct sock_filter {code, jt, jf, k}, read
on each call with the call's number, architecture and arguments at hand. Source: seccomp(2), and the
numbers in asm/unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FLAGS = 0, 4, 16  # where each is found
_ALLOW, _NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | errno.ENOSYS
_OTHER_ABI = 0x40000000  # x32's numbers on x86-64
_CLONE_NEWUSER = 0x10000000


@dataclass(frozen=True)
class Calls:
    """One architecture's name, and its numbers for calls."""

    architecture: int
    keys: tuple[int, ...]  # add_key, request_key, keyctl
    memory: tuple[int, ...]  # memfd_create, memfd_secret, shmget, io_uring_setup
    namespaces: tuple[int, ...]  # unshare; clone3, whose flags a filter cannot read
    clone: int


MACHINES = {
    "x86_64": Calls(0xC000003E, (248, 249, 250), (319, 447, 29, 425), (272, 435), 56),
    "aarch64": Calls(0xC00000B7, (217, 218, 219), (279, 447, 194, 425), (97, 435), 220),
}


def forbid(gpu: bool = False) -> bool:
    """From now on this process and its children cannot make those calls. False: no filter here.

    `gpu`: memory files are allowed, which a GPU's driver and NCCL need.
    """
    calls = MACHINES.get(platform.machine())
    if calls is None:
        return False
    lines = _program(calls, gpu)
    program = b"".join(struct.pack("HBBI", *line) for line in lines)
    text = ctypes.create_string_buffer(program, len(program))
    about = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return libc.prctl(_PR_SET_SECCOMP, _FILTER, about, 0, 0) == 0


def _program(calls: Calls, gpu: bool) -> list[tuple[int, int, int, int]]:
    """The filter; a line is (code, how many lines to skip if so, if not, number)."""
    numbers = calls.keys + calls.namespaces + (() if gpu else calls.memory)
    to_the_end = len(numbers) + 5
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, to_the_end, calls.architecture)]
    lines += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, to_the_end - 2, 0, _OTHER_ABI)]
    lines += [(_EQUAL, 3 + len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    lines += [(_EQUAL, 0, 2, calls.clone), (_LOAD, 0, 0, _FLAGS)]
    lines += [(_HAS_BITS, 1, 0, _CLONE_NEWUSER)]
    return [*lines, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NO_SUCH_CALL)]
