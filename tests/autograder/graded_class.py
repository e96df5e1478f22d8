"""A class whose judgements are written by hand, recorded in a real gradebook: nothing runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tiny_course
from nbformat import write

from autograder.batch.grading import GradeOptions
from autograder.grade import gradebook
from autograder.grade.engine import Grader, students_cells
from autograder.grade.journal import Judgement
from autograder.grade.verdicts import Verdict
from autograder.places import Places
from autograder.release import generate as release

OPTIONS = GradeOptions(sandboxed=False, progress=False)
NAME = tiny_course.ASSIGNMENT
DOUBLE = Verdict("test-double", "passed", 2, 2, seconds=0.4)
TOTAL = Verdict("test-total", "passed", 3, 3, seconds=0.9)


def failed(verdict: Verdict, message: str, kind="failed", part="two ranks", **more) -> Verdict:
    """The same test, lost."""
    return replace(verdict, verdict=kind, points=0, part=part, message=message, **more)


def judge(
    where: Places,
    student: str,
    *verdicts: Verdict,
    when="2026-03-01T12:00:00+00:00",
    is_entered=True,
):
    """Write a judgement on what a student handed in to the journal and, entered, the gradebook."""
    with Grader(where, sandboxed=False) as grader:
        submission = grader.take_in(student, NAME)
        cells = students_cells(submission.intake.notebook)
        judgement = Judgement(
            submission.key, student, NAME, when, 1, "none", 1.5, [], list(verdicts), cells
        )
        grader.journal.append(judgement)
        if is_entered:
            gradebook.record(grader, student, NAME)


def make(folder: Path) -> Places:
    """Four students: two right, two with the same mistake; all wait for a mark by hand."""
    where = tiny_course.make_course(folder)
    release.register(where, NAME)
    blank = tiny_course.released(where)
    right = tiny_course.solved(blank)
    wrong = tiny_course.answered(right, total="def total(t):\n    return t")
    for student, notebook in {"ada": right, "ben": right, "cem": wrong, "dee": wrong}.items():
        tiny_course.hand_in(where, student, notebook)
    judge(where, "ada", DOUBLE, TOTAL)
    judge(where, "ben", DOUBLE, TOTAL)
    judge(where, "cem", DOUBLE, failed(TOTAL, "rank 0: got [1.0, 2], expected [4.5, 5]"))
    judge(where, "dee", DOUBLE, failed(TOTAL, "rank 1: got [-3.0, 2, 7], expected [4, 5, 6]"))
    return where


def of_words(folder: Path) -> Places:
    """A class of one, Ada, whose exercise has one answer in words and no test; not judged yet."""
    where = tiny_course.make_course(folder)
    source = tiny_course.source()
    source.cells = [cell for cell in source.cells if cell.id in ("tiny", "imports", "why")]
    source.cells[0].source = tiny_course.HEADER.replace("Points: 6", "Points: 1")
    write(source, where.source(NAME))
    release.release(where, [NAME])
    release.register(where, NAME)
    tiny_course.hand_in(where, "ada", tiny_course.solved(tiny_course.released(where)))
    return where
