"""Calls to the kernel that a rank of a sandbox may not make: what no limit and no wall would hold.

Memory: a limit on a process's memory holds what is mapped into it. What a program writes into a
memory file, or into a System V segment that it lets go of, is mapped nowhere and counted nowhere: a
few lines would fill the machine. Keys: a session's keyring is inherited through every namespace, so
a rank could read and clear its grader's, and leave values there for other ranks and questions. Such
a call fails with ENOSYS, as on a kernel that has none.

Sockets: what ranks send each other is counted for TCP, so other kinds are out of reach. Unix
sockets count among them: the names they are bound to stand in /proc for every rank to read. What
remains is TCP, and the kernel's table of interfaces, which gloo and libc read by netlink. Another
kind fails with EAFNOSUPPORT.

The filter is a program for the kernel's packet filter: struct sock_filter {code, jt, jf, k}, read
on each call with the call's number, architecture and arguments at hand. Source: seccomp(2), and the
numbers in asm/unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FAMILY, _KIND, _PROTOCOL = 0, 4, 16, 24, 32  # where each is found
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_OTHER_ABI = 0x40000000  # x32's numbers on x86-64
_KINDS, _ROUTE = 0xF, 0  # flags may stand above a kind; the netlink of interfaces and routes


@dataclass(frozen=True)
class Calls:
    """One architecture's name, and its numbers for calls."""

    architecture: int
    keys: tuple[int, ...]  # add_key, request_key, keyctl
    memory: tuple[int, ...]  # memfd_create, memfd_secret, shmget, io_uring_setup
    socket: int
    pair: int  # socketpair, whose ends may be bound to names too


MACHINES = {
    "x86_64": Calls(0xC000003E, (248, 249, 250), (319, 447, 29, 425), 41, 53),
    "aarch64": Calls(0xC00000B7, (217, 218, 219), (279, 447, 194, 425), 198, 199),
}


def forbid(gpu: bool = False) -> bool:
    """From now on this process and its children cannot make those calls. False: no filter here.

    `gpu`: only calls about keys. A GPU's driver and NCCL need memory files and unix sockets.
    """
    calls = MACHINES.get(platform.machine())
    if calls is None:
        return False
    program = _program(calls, gpu)
    text = ctypes.create_string_buffer(program, len(program))
    about = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return libc.prctl(_PR_SET_SECCOMP, _FILTER, about, 0, 0) == 0


def _program(calls: Calls, gpu: bool) -> bytes:
    """The filter. A line is (code, number, where to if so, where to if not): a name, or onwards."""
    lines = {"": (_LOAD, _ARCHITECTURE), "its own": (_EQUAL, calls.architecture, "", "none")}
    lines["which"] = (_LOAD, _NUMBER)
    for number in calls.keys + (() if gpu else calls.memory):
        lines[f"call {number}"] = (_EQUAL, number, "none", "")
    lines["x32"] = (_AT_LEAST, _OTHER_ABI, "none", "")
    if not gpu:
        lines["pair"] = (_EQUAL, calls.pair, "no such family", "")
        lines["socket"] = (_EQUAL, calls.socket, "", "allow")
        lines |= _SOCKETS
    lines["allow"] = (_RETURN, _ALLOW)
    lines["none"] = (_RETURN, _FAIL | errno.ENOSYS)
    lines["no such family"] = (_RETURN, _FAIL | errno.EAFNOSUPPORT)
    return _assembled(lines)


_SOCKETS = {
    "family": (_LOAD, _FAMILY),
    "netlink": (_EQUAL, socket.AF_NETLINK, "protocol", ""),
    "ip": (_EQUAL, socket.AF_INET, "kind", ""),
    "ip 6": (_EQUAL, socket.AF_INET6, "kind", "no such family"),
    "kind": (_LOAD, _KIND),
    "without flags": (_AND, _KINDS),
    "stream": (_EQUAL, socket.SOCK_STREAM, "", "no such family"),
    "stream's protocol": (_LOAD, _PROTOCOL),
    "tcp": (_EQUAL, socket.IPPROTO_TCP, "allow", ""),
    "protocol": (_LOAD, _PROTOCOL),
    "default or route": (_EQUAL, _ROUTE, "allow", "no such family"),
}


def _assembled(lines: dict[str, tuple]) -> bytes:
    """The bytes of a program whose lines name each other."""
    at = {name: index for index, name in enumerate(lines)}
    program = b""
    for index, (code, number, *ways) in enumerate(lines.values()):
        jumps = [at[way] - index - 1 if way else 0 for way in ways] or [0, 0]
        program += struct.pack("HBBI", code, *jumps, number)
    return program
