"""One process grades a class at a time, and Ctrl-C waits while it writes."""

import contextlib
import fcntl
import os
import signal
import threading
from collections.abc import Iterator

from autograder.places import CourseError, Places


@contextlib.contextmanager
def alone(where: Places) -> Iterator[None]:
    """Nobody else grades this class meanwhile.

    Raises:
        CourseError: somebody does.
    """
    where.class_dir.mkdir(parents=True, exist_ok=True)
    with open(where.class_dir / "grading.lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CourseError(
                f"process {file.read() or 'unknown'} is grading this class: wait until it is done"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
