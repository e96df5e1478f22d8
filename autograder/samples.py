"""Made-up hand-ins, whose worth is known before they are graded: of `make course`, and the demo."""

import importlib
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from autograder.batch.queue import Work
from autograder.grade.journal import Journal, Judgement
from autograder.grade.verdicts import first_paragraph
from autograder.places import CourseError, Places
from byhand.words import counted

SOLVED, BLANK = "the-solution", "the-blank"
Worth = Mapping[tuple[str, str], int]  # points, by student and assignment


def made_up(where: Places, name: str) -> ModuleType:
    """The module of tests/submissions that makes a class up.

    Raises:
        CourseError: the course has none, as what pip installed.
    """
    folder = where.course / "tests" / "submissions"
    if not (folder / f"{name}.py").exists():
        raise CourseError(
            f"{where.course} is no checkout of the course: the made-up hand-ins are made from its"
            " tests/submissions and tests/answers, which pip does not install. Clone the course,"
            " and give this command there."
        )
    sys.path[:0] = [str(folder), str(folder.parent)]
    return importlib.import_module(name)


def hand_in(where: Places, write: Callable[[Path], None], students: Iterable[str]) -> None:
    """Have `write` fill submitted/; a class in which there were others than these starts anew."""
    if {one.student for one in Journal(where.journal).latest()} - {*students}:
        shutil.rmtree(where.class_dir)
    shutil.rmtree(where.submitted, ignore_errors=True)
    write(where.submitted)


@dataclass(frozen=True)
class Samples:
    """Work as it is, but that nothing is in doubt about a submission that gets what it is worth."""

    work: Work
    worth: Worth

    def worker(self) -> AbstractContextManager:
        return self.work.worker()

    def is_doubtful(self, line: str) -> bool:
        judgement = Judgement.from_line(line.encode())
        return self.work.is_doubtful(line) and bool(surprises([judgement], self.worth))


def surprises(judgements: list[Judgement], worth: Worth) -> list[str]:
    """A sentence for each submission that is not worth so many points: by default none, and of a
    solution all."""
    found = []
    for one in judgements:
        all_of_it = one.max_points if one.student == SOLVED else 0
        expected = worth.get((one.student, one.assignment), all_of_it)
        if one.points != expected:
            said = [f"{v.question} {v.verdict} {first_paragraph(v.message)}" for v in one.verdicts]
            got = f"got {counted(one.points, 'point')}, not {expected}"
            found.append(f"{one.student}, {one.assignment} {got}: {'; '.join(said)}")
    return found
