"""Judges of one machine take turns: side by side, or one alone.

Both are locks on files of this package, so that nothing is left behind: `_GATE` closes to newcomers
while somebody waits for `_ROOM` to be empty. Where such files cannot be locked (an NFS that wants
them opened for writing), or others take too long, nobody waits.
"""

import contextlib
import fcntl
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
    with contextlib.ExitStack() as held:
        with _locked(_GATE, fcntl.LOCK_SH):
            held.enter_context(_locked(_ROOM, fcntl.LOCK_SH))
        yield


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Judge a question while nobody else judges one. Not inside `beside_others`."""
    with _locked(_GATE, fcntl.LOCK_EX), _locked(_ROOM, fcntl.LOCK_EX):
        yield


def is_alone() -> bool:
    """Whether nobody else judges now."""
    with open(_ROOM, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    until = time.monotonic() + MOST_SECONDS
    with open(path, "rb") as file:
        while time.monotonic() < until:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(TICK)
            except OSError:
                break
        yield
