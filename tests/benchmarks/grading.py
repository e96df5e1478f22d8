"""Submissions graded a minute: `autograder grade` beside `nbgrader autograde`, on the same class.

    python tests/benchmarks/grading.py [students]

The exercise has two tasks; each test launches four ranks twice, once in its hidden part. A quarter
of the class hands in the blank. Both tools start anew, judge everything, fill a gradebook of their
own, and must come to the same scores. nbgrader runs as it comes, in one kernel for each notebook;
ours judges in a sandbox, one submission for each core. A quarter of the class is graded first, so
that what each further submission costs shows beside the whole, in which both tools start once.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import tiny_course
import torch
from nbformat import write
from nbgrader.api import Gradebook

from autograder.batch.queue import cores
from autograder.places import Places
from autograder.release import generate as release
from byhand.runtime.walls.isolation import why_no_sandbox

STUDENTS, AIM = 32, 6
DOUBLE = """def drive_double(rank, world_size, number):
    return double(number)


with check.part("four ranks, the number 21"):
    check.results(launch(drive_double, 4, args=(21,)), [42] * 4, what="double")
### BEGIN HIDDEN TESTS
with check.part("a hidden number"):
    check.results(launch(drive_double, 4, args=(-5,)), [-10] * 4, what="double")
### END HIDDEN TESTS"""
TOTAL = """def drive_total(rank, world_size, tensor):
    return total(tensor)


with check.part("four ranks"):
    _tensors = [check.whole_numbers(3) for rank in range(4)]
    _run = launch(drive_total, 4, args=(PerRank(_tensors),))
    check.results(_run, [sum(_tensors)] * 4, what="total")
    check.communication(_run, all_reduce=1)
### BEGIN HIDDEN TESTS
with check.part("other numbers"):
    _tensors = [check.whole_numbers(5) for rank in range(4)]
    _run = launch(drive_total, 4, args=(PerRank(_tensors),))
    check.results(_run, [sum(_tensors)] * 4, what="total")
### END HIDDEN TESTS"""
OURS = """
import json, sys
from pathlib import Path
from autograder.batch.grading import GradeOptions, grade
from autograder.places import Places
where = Places(Path(sys.argv[1]), Path(sys.argv[2]))
options = GradeOptions(sandboxed=json.loads(sys.argv[4]), progress=False, jobs=int(sys.argv[3]))
sys.exit("\\n".join(grade(where, where.assignments(), options=options).failures) or 0)
"""
THEIRS = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.CourseDirectory.course_id = "bench"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "released"
c.CourseDirectory.submitted_directory = {submitted!r}
c.CourseDirectory.autograded_directory = {autograded!r}
c.CourseDirectory.db_url = "sqlite:///" + {database!r}
"""


def make_class(folder: Path, students: int) -> Places:
    """The exercise, and what the students hand in."""
    where = Places(folder / "course", folder / "class")
    source = tiny_course.source()
    source.cells = source.cells[:-1]  # the answer that a person would mark
    for cell in source.cells:
        cell.source = {"test-double": DOUBLE, "test-total": TOTAL}.get(cell.id, cell.source)
        cell.source = cell.source.replace("Points: 6", "Points: 5")
    path = where.solutions / tiny_course.ASSIGNMENT / f"{tiny_course.STEM}.ipynb"
    path.parent.mkdir(parents=True)
    write(source, path)
    release.release(where, [tiny_course.ASSIGNMENT])
    blank = tiny_course.released(where)
    right = tiny_course.answered(blank, double=tiny_course.DOUBLE, total=tiny_course.TOTAL)
    for number in range(students):
        tiny_course.hand_in(where, f"student-{number:03}", right if number % 4 else blank)
    return where


def ours(where: Places) -> tuple[float, dict[str, float]]:
    """Seconds that `autograder grade` takes, and the scores."""
    words = [
        str(where.course),
        str(where.class_dir),
        str(cores()),
        "false" if why_no_sandbox() else "true",
    ]
    seconds = timed([sys.executable, "-c", OURS, *words])
    return seconds, scores(where.gradebook)


def theirs(where: Places) -> tuple[float, dict[str, float]]:
    """Seconds that `nbgrader autograde` takes, and the scores."""
    folder = where.course
    database = folder / "nbgrader.db"
    (folder / "nbgrader_config.py").write_text(
        THEIRS.format(
            root=str(folder),
            submitted=os.path.relpath(where.submitted, folder),
            autograded=str(folder / "autograded"),
            database=str(database),
        )
    )
    nbgrader = [sys.executable, "-m", "nbgrader"]
    timed([*nbgrader, "generate_assignment", tiny_course.ASSIGNMENT], folder)
    seconds = timed([*nbgrader, "autograde", tiny_course.ASSIGNMENT], folder)
    return seconds, scores(database)


def timed(command: list[str], folder: Path | None = None) -> float:
    """Seconds that a command takes."""
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed:\n{done.stderr[-3000:]}")
    return time.monotonic() - began


def scores(database: Path) -> dict[str, float]:
    """Each student's score in a gradebook."""
    with warnings.catch_warnings(), Gradebook(f"sqlite:///{database}") as book:
        warnings.simplefilter("ignore")
        found = book.assignment_submissions(tiny_course.ASSIGNMENT)
        return {submission.student.id: submission.score for submission in found}


def measure(students: int) -> tuple[float, float]:
    """Seconds that nbgrader and we take for a class of this size; both must find the same."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        where = make_class(Path(folder), students)
        (seconds, found), (slow, expected) = ours(where), theirs(where)
    assert found == expected, f"the scores differ: {found}, {expected}"
    return slow, seconds


def main(students: int) -> None:
    """Grade a class and a quarter of it with both, and print submissions a minute."""
    os.environ["PATH"] = os.pathsep.join([f"{sys.prefix}/bin", os.environ.get("PATH", "")])
    few = students // 4
    small, large = measure(few), measure(students)
    print(
        f"{platform.machine()}, {cores()} cores, torch {torch.__version__}; submissions with four"
        f" checks on four ranks each; ours {why_no_sandbox() or 'in the sandbox'}"
    )
    print(f"{'submissions a minute':<22}{'nbgrader':>10}{'ours':>10}{'ratio':>8}  aim")
    whole = [60 * students / seconds for seconds in large]
    pairs = zip(large, small, strict=True)
    further = [60 * (students - few) / (big - little) for big, little in pairs]
    for name, (slow, fast) in ((f"{students}, with the start", whole), ("each further", further)):
        print(f"{name:<22}{slow:10.1f}{fast:10.1f}{fast / slow:7.1f}×  ≥ {AIM}×")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STUDENTS)
