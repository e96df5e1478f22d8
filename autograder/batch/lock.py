"""One process grades a class at a time."""

import contextlib
import fcntl
import os
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
