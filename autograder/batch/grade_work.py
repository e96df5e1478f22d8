"""Submissions judged by warm kernels: the work that the queue does for `autograder grade`."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autograder.batch.queue import Do
from autograder.grade.engine import Grader
from autograder.grade.journal import Judgement
from autograder.grade.verdicts import RESOURCE, TIMEOUT
from autograder.places import CourseError, Places

HandIn = tuple[str, str]  # student, assignment


@dataclass(frozen=True)
class GradeWork:
    """Work for the queue: items are (student, assignment), results the lines of a journal.

    `engine` is what each Grader is made with, `means` those of the one that sends the work.
    """

    where: Places
    engine: dict[str, Any]
    means: str

    @contextlib.contextmanager
    def worker(self) -> Iterator[tuple[Do, Any]]:
        """A warm kernel and a sandbox, for one submission after the other.

        Raises:
            CourseError: this node would not judge by the same means.
        """
        with Grader(self.where, **self.engine) as grader:
            if grader.means != self.means:
                raise CourseError(
                    f"this node has {grader.means}; the process that submitted the job has"
                    f" {self.means}: use one environment and one checkout on a disk they share,"
                    " and one sandbox"
                )
            yield (
                lambda hand_in: grader.new_judgement(grader.take_in(*hand_in)).as_line().decode(),
                grader.kernel.kernel.kill,  # from any thread: judge nothing more
            )

    def is_doubtful(self, line: str) -> bool:
        """A question that took too long, or was short of memory, beside others may not be alone."""
        verdicts = Judgement.from_line(line.encode()).verdicts
        return any(verdict.verdict in (TIMEOUT, RESOURCE) for verdict in verdicts)
