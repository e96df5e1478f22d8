"""Submissions judged by warm workers: the work that the queue does for `autograder grade`."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autograder.grade.engine import Grader
from autograder.places import CourseError, Places

Place = tuple[str, str]  # student, assignment


@dataclass(frozen=True)
class Judging:
    """Work for the queue: items are (student, assignment), results the lines of a journal.

    `engine` is what each Grader is made with, `means` those of the one that sends the work.
    """

    where: Places
    engine: dict[str, Any]
    means: str

    def prepare(self) -> None:
        """See that this node judges by the same means. It loads torch, papermill and nbgrader.

        Raises:
            CourseError: it would not.
        """
        with Grader(self.where, **self.engine) as grader:
            here = grader.means
        if here != self.means:
            raise CourseError(
                f"this node has {here}; the process that submitted the job has {self.means}:"
                " use one environment and one checkout on a disk they share, and one sandbox"
            )

    @contextlib.contextmanager
    def worker(self) -> Iterator[Any]:
        """A warm kernel and a sandbox, for one submission after the other."""
        with Grader(self.where, **self.engine) as grader:
            yield lambda place, say: grader.judge(grader.take_in(*place)).as_line().decode()
