"""What `make course` does once everything is installed; ends with a table of what it did.

1. Every lecture is executed, and its page written; again only when it or the library changed.
2. The sample class of tests/submissions is graded, recorded, and given its feedback. It also hands
   in every exercise's solution, which must score all points, and its blank, which must score none.

The sample class lives in build/sample-class, and nothing else does: `autograder serve --class
build/sample-class` opens it in the formgrader.
"""

import hashlib
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import torch

from autograder.batch.grading import Options, grade
from autograder.batch.notebooks import find_notebooks, run_notebooks
from autograder.batch.queue import cores, here
from autograder.batch.running import Running
from autograder.grade.journal import LIBRARY, Journal, Judgement
from autograder.grade.verdicts import first_paragraph
from autograder.places import COURSE, CourseError, Places
from autograder.release.generate import release
from autograder.report.class_page import write_report
from autograder.report.feedback import write_feedback
from byhand.runtime.walls.isolation import why_no_sandbox
from byhand.words import counted

SOLVED, BLANK = "the-solution", "the-blank"


@dataclass
class Row:
    """One line of the closing table; `problems` are sentences, and any of them is a failure."""

    what: str
    seconds: float
    where: str
    problems: list[str] = field(default_factory=list)


def run_lectures(lectures: Path, build: Path) -> Row:
    """Execute the lectures that changed, side by side; their pages go to build/lectures."""
    began = time.monotonic()
    build.mkdir(parents=True, exist_ok=True)
    stamps = build / "lectures.json"
    known = json.loads(stamps.read_text()) if stamps.exists() else {}
    now = {notebook: _inputs(notebook) for notebook in find_notebooks([lectures])}
    pages = {notebook: build / lectures.name / f"{notebook.stem}.html" for notebook in now}
    todo = [one for one in now if known.get(one.stem) != now[one] or not pages[one].exists()]
    ran = run_notebooks(todo, build, Running(), here(cores()), progress=True)
    failed = {one.notebook: one.error for one in ran if one.error}
    stamps.write_text(json.dumps({one.stem: now[one] for one in now if one not in failed}))
    what = f"lectures run: {len(now) - len(failed)} of {len(now)}"
    if len(todo) < len(now):
        what += f", {len(now) - len(todo)} of them before, and nothing changed since"
    where = f"{_short(build)}/lectures/*.html"
    return Row(what, time.monotonic() - began, where, list(failed.values()))


def grade_class(course: Path, build: Path, sandboxed: bool) -> Row:
    """Grade the sample class; its grades on one page, and feedback for each student.

    Its first two students hand in each exercise's solution, which must score full, and its blank,
    which must score nothing. Whoever does not get the points that were said is a problem.
    """
    began, where = time.monotonic(), Places(course, build / "sample-class")
    where.exercises = build / "exercises"  # as released: somebody may work in the others
    release(where, where.assignments(), overwrite=True)
    sys.path.insert(0, str(course / "tests" / "submissions"))
    samples = importlib.import_module("sample_class")
    hand_in(samples, where)
    options = Options(sandboxed=sandboxed, jobs=cores())
    outcome = grade(where, where.assignments(), options=options)
    pages = write_feedback(where, where.assignments(), [])
    worth = {(case.student, case.assignment): case.points for case in samples.CASES}
    best = {(j.student, j.assignment): j.max_points for j in outcome.judgements}
    worth |= {place: points for place, points in best.items() if place[0] == SOLVED}
    problems = outcome.failures + surprises(outcome.judgements, worth)
    what = f"class graded: {counted(len(outcome.judgements), 'submission')}, {outcome.new} judged"
    what += f" now{'' if sandboxed else ', without a sandbox'}; {len(pages)} feedback pages"
    page = write_report(where, build / "grades.html")
    return Row(what, time.monotonic() - began, _short(page), problems)


def hand_in(samples: ModuleType, where: Places) -> None:
    """Write what the samples hand in to submitted/; a class with other students starts anew."""
    known = {one.student for one in Journal(where.journal).latest()}
    if known - {SOLVED, BLANK, *(case.student for case in samples.CASES)}:
        shutil.rmtree(where.class_dir)
    shutil.rmtree(where.submitted, ignore_errors=True)
    samples.write_class(where.submitted)
    for assignment in where.assignments():
        for student, path in ((SOLVED, where.source), (BLANK, where.released)):
            target = where.submitted / student / assignment / path(assignment).name
            target.parent.mkdir(parents=True)
            shutil.copyfile(path(assignment), target)


def surprises(judgements: list[Judgement], worth: Mapping[tuple[str, str], int]) -> list[str]:
    """A sentence for each submission that is not worth so many points, or none by default."""
    found = []
    for one in judgements:
        expected = worth.get((one.student, one.assignment), 0)
        if one.points != expected:
            said = [f"{v.question} {v.verdict} {first_paragraph(v.message)}" for v in one.verdicts]
            got = f"got {counted(one.points, 'point')}, not {expected}"
            found.append(f"{one.student}, {one.assignment} {got}: {'; '.join(said)}")
    return found


def table(rows: Iterable[Row]) -> str:
    """The rows in columns, and below them what went wrong."""
    rows = list(rows)
    wide = max(len(row.what) for row in rows)
    lines = [f"{row.what:{wide}}  {row.seconds:6.1f} s  {row.where}" for row in rows]
    return "\n".join([*lines, *(f"failed: {what}" for row in rows for what in row.problems)])


def main() -> int:
    """Do it all; 0 when nothing failed."""
    build = COURSE / "build"
    reason = why_no_sandbox()
    if reason:
        print(f"The course grades its own sample class unsandboxed: {reason}.", flush=True)
    try:
        print("Running the lectures.", flush=True)
        rows = [run_lectures(COURSE / "lectures", build)]
        print("Grading a class: samples, each solution, each blank.", flush=True)
        rows.append(grade_class(COURSE, build, not reason))
    except CourseError as error:
        print(f"make course stopped: {error}", file=sys.stderr)
        return 1
    print("\n" + table(rows) + "\n\n" + next_steps(build / "sample-class"))
    return 1 if any(row.problems for row in rows) else 0


def next_steps(sample_class: Path) -> str:
    """What to type now, as it works where `make course` was typed."""
    return f"""Next:
  make lab    lectures and exercises in JupyterLab, in a copy that is yours
  . {_short(Path(sys.prefix))}/bin/activate    what autograder has to say: autograder --help
  autograder serve --class {_short(sample_class)}    the sample class in the formgrader"""


def _inputs(notebook: Path) -> str:
    """All that decides what a lecture shows: itself, the library, torch."""
    digest = hashlib.sha256(notebook.read_bytes() + torch.__version__.encode())
    for path in sorted(LIBRARY.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
