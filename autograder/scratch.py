"""Temporary folders that are gone when their owner is, if need be at the next start."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

PREFIX = "judge-"
SECONDS_TO_LOCK = 5  # a folder this young may not be locked yet


class Scratch:
    """A private folder. Its owner holds a lock on it, so that a folder without an owner shows."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: Any) -> None:
        self.close()


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
