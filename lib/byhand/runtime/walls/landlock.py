"""Landlock: a process gives up, for itself and for all that it starts, what it will not need.

Files: only what `readable` and `writable` name stays within reach. Sockets and signals: with Linux
6.12 or newer, no abstract unix socket and no process outside this one's own domain. A domain also
keeps its processes from tracing any outside it. Needs no privilege, and cannot be undone.
Source: kernel documentation, userspace-api/landlock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same numbers on every architecture
_VERSION, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38
_SCOPED = 0b11  # abstract unix sockets, signals
SCOPES_SINCE = 6

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_BASIC = (1 << 13) - 1  # what the first version can forbid
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The kernel's version of Landlock; 0 where it has none."""
    return max(0, _libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))


def separate() -> bool:
    """Leave every process outside out of reach of signals, traces and abstract sockets.

    False where the kernel is too old for it.
    """
    if version() < SCOPES_SINCE:
        return False
    _enforce(_ruleset(0, _SCOPED))
    return True


def confine(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Keep only these files and directories (and what is below them), and `separate`.

    Raises:
        OSError: the kernel has no Landlock, or refuses.
    """
    handled = _BASIC
    for since, access in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        handled |= access if version() >= since else 0
    ruleset = _ruleset(handled, _SCOPED if version() >= SCOPES_SINCE else 0)
    for path in readable:
        _allow(ruleset, path, _READ & handled)
    for path in writable:
        _allow(ruleset, path, handled)
    _enforce(ruleset)


def _ruleset(handled: int, scoped: int) -> int:
    attributes = struct.pack("QQQ", handled, 0, scoped)
    length = 24 if version() >= SCOPES_SINCE else 8
    return _check(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(length), 0), "a ruleset")


def _allow(ruleset: int, path: str, access: int) -> None:
    """Let a path through the ruleset; one that does not exist needs no rule."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        access &= _FOR_FILES
    rule = struct.pack("=Qi", access, descriptor)
    try:
        _check(_libc.syscall(_ADD, ruleset, _PATH_BENEATH, rule, 0), f"a rule for {path}")
    finally:
        os.close(descriptor)


def _enforce(ruleset: int) -> None:
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, ruleset)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _check(_libc.syscall(_RESTRICT, ruleset, 0), "restricting this process")


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock, {what}: {os.strerror(number)}")
    return result
