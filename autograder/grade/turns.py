"""Judges of one machine take turns: side by side, or one alone.

Both are locks on files of this package, so that nothing is left behind: `_GATE` closes to newcomers
while somebody waits for `_ROOM` to be empty. Where such files cannot be locked (an NFS that wants
them opened for writing), or others take too long, nobody waits.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_ROOM = Path(__file__)
_GATE = _ROOM.with_name("__init__.py")
MOST_SECONDS = 600.0  # to wait for others: a question's limit, as far as load stretches it
TICK = 0.02


@contextlib.contextmanager
def beside_others() -> Iterator[None]:
    """Judge a question while others judge theirs."""
    with _locked(_GATE, fcntl.LOCK_SH):
        room = _take(_ROOM, fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(room)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Judge a question while nobody else judges one. Not inside `beside_others`."""
    with _locked(_GATE, fcntl.LOCK_EX), _locked(_ROOM, fcntl.LOCK_EX):
        yield


def is_alone() -> bool:
    """Whether nobody else judges now."""
    descriptor = os.open(_ROOM, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    descriptor = _take(path, how)
    try:
        yield
    finally:
        os.close(descriptor)


def _take(path: Path, how: int) -> int:
    descriptor, until = os.open(path, os.O_RDONLY), time.monotonic() + MOST_SECONDS
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(TICK)
        except OSError:
            break
    return descriptor
