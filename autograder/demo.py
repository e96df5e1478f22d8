"""What an instructor tries first: a made-up class, graded, a line for each hand-in, the formgrader.

All of it lies in build/demo of the checkout, exercises as they are released and JupyterLab's own
files included, so that it can be deleted, and nothing else changes.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder import serve as serving
from autograder.batch.grading import GradeOptions, grade
from autograder.batch.queue import cores, here
from autograder.collect.tables import as_csv
from autograder.grade import late
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.grade.verdicts import BLANK, PASSED, first_paragraph
from autograder.places import Places
from autograder.places import places as places_of
from autograder.release.generate import release
from autograder.report.class_page import write_report
from autograder.report.export import plain
from autograder.report.feedback import page_path, write_feedback
from autograder.report.similarity import write_similarity
from autograder.samples import Samples, hand_in, made_up, surprises
from byhand.runtime.walls.isolation import why_no_sandbox
from byhand.words import counted, plain_text

LIMIT = 8.0  # seconds of a test cell, for one that never ends: it usually has 30
WORTH_A_LOOK = "gil-hang"
ALIKE = "who wrote alike; in this class nearly all did, eli and fay but for names"
FIRST = "/formgrader/manage_submissions/01_ranks"


@dataclass
class Demo:
    """The class, its hand-ins as they were judged, their marks, and what should not have been."""

    where: Places
    judgements: list[Judgement]
    marks: dict[tuple[str, str], Marks]
    problems: list[str]


def places(course: Path) -> Places:
    """Where the demo keeps what other commands keep in the course and in build/class."""
    where = places_of(course / "build" / "demo", course)
    where.exercises, where.work = where.class_dir / "exercises", where.class_dir / "work"
    return where


def graded(where: Places) -> Demo:
    """Hand the class in, and grade what of it was not graded before.

    Raises:
        CourseError: this is no checkout, or somebody grades this class already.
    """
    made = made_up(where, "demo_class")
    where.class_dir.mkdir(parents=True, exist_ok=True)
    hand_in(where, made.write_class, [case.student for case in made.CASES])
    (where.class_dir / "class.toml").write_text(made.POLICY)
    names = sorted({case.assignment for case in made.CASES})
    release(where, names, overwrite=True)
    worth = {(case.student, case.assignment): case.points for case in made.CASES}
    sandboxed = not why_no_sandbox()
    options = GradeOptions(
        sandboxed=sandboxed,
        limit=LIMIT,
        queue=lambda work, items: here(cores())(Samples(work, worth), items),
    )
    outcome = grade(where, names, options=options)
    late.apply(where)
    wrong = surprises(outcome.judgements, worth) if sandboxed else []  # else thieves may find it
    marks = read_marks(where, outcome.judgements)
    return Demo(where, outcome.judgements, marks, [*outcome.failures, *wrong])


def pages(demo: Demo) -> list[tuple[Path, str]]:
    """What comes of grading, written: each file, and what it is."""
    where, judgements = demo.where, demo.judgements
    names = sorted({one.assignment for one in judgements})
    write_feedback(where, names, [])
    (hang,) = (one for one in judgements if one.student == WORTH_A_LOOK)
    grades = where.class_dir / "grades.csv"
    grades.write_text(as_csv(plain(where, names)), encoding="utf-8")
    return [
        (write_report(where, where.class_dir / "grades.html"), "the class: begin here"),
        (page_path(where, hang), "what a student reads; one for each"),
        (write_similarity(where, names, where.class_dir / "similarity.html"), ALIKE),
        (grades, "for a spreadsheet; autograder export fills in Canvas's or Moodle's"),
    ]


def lines(demo: Demo, width: int) -> Iterable[str]:
    """For each hand-in its author, mark and why, no longer than `width`."""
    longest = max(len(one.student) for one in demo.judgements)
    for one in demo.judgements:
        mark = demo.marks[one.assignment, one.student]
        said = f"{mark.score} of {mark.max_score}" if mark.score is not None else "no mark"
        head, more = f"{one.student:{longest}}  {said:>8}  ", _more(one, mark)
        why, left = plain_text(_why(one), None), width - len(head) - len(more)
        yield head + (why if len(why) <= left else why[: left - 1] + "…") + more


def _why(judgement: Judgement) -> str:
    lost = [verdict for verdict in judgement.verdicts if verdict.verdict != PASSED]
    if not lost:
        return "every test passed"
    if judgement.standing == BLANK:
        return f"{BLANK}: as it was given out"
    tests = ", ".join(f"{v.question.removeprefix('test-')} {v.verdict}" for v in lost)
    return f"{judgement.standing or tests}: {_first_line(lost[0].message)}"


def _more(judgement: Judgement, mark: Marks) -> str:
    """What an instructor is told besides."""
    late = f"; late, {mark.late_penalty:g} taken off" if mark.late_penalty else ""
    notes = counted(len(judgement.suspicions), "note")
    return late + (f"; {notes} to you" if judgement.suspicions else "")


def _first_line(message: str) -> str:
    return first_paragraph(message).partition("\n")[0]


def serve(where: Places, options: Iterable[str]) -> None:
    """Become a JupyterLab that shows the formgrader, and keeps its own files in the demo."""
    own = where.work / ".jupyter" / "own"
    os.environ |= {"JUPYTER_CONFIG_DIR": str(own), "JUPYTER_DATA_DIR": str(own / "data")}
    os.environ |= {"IPYTHONDIR": str(own / "ipython")}
    quiet = "--ServerApp.answer_yes=True", *options  # Ctrl-C ends it, and asks nothing
    serving.serve(where, quiet, first=FIRST)
