"""Temporary folders that are gone when their owner is, if need be at the next start."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "judge-"
SECONDS_TO_LOCK = 5  # a folder this young may not be locked yet


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A private folder, locked by its owner, so that a folder without an owner shows."""
    remove_abandoned()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def remove_abandoned() -> list[Path]:
    """Remove this user's folders whose owner was killed; which they were."""
    removed = []
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(path):
                shutil.rmtree(path)
                removed.append(path)
    return removed


def _is_abandoned(path: Path) -> bool:
    about = path.lstat()
    if about.st_uid != os.getuid() or time.time() - about.st_mtime < SECONDS_TO_LOCK:
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
