"""What `make course` does once everything is installed; ends with a table of what it did.

1. Every lecture is executed, and its page written; again only when it or the library changed.
2. Every exercise is proven: its solution scores all points, its blank none.
3. The sample class of tests/submissions is graded, recorded, and given its feedback.

The sample class lives in build/sample-class, and nothing else does: `make lab` with
CLASS=build/sample-class opens it in the formgrader.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import torch

from autograder.batch.grading import Options as Grading
from autograder.batch.grading import Outcome, grade
from autograder.batch.notebooks import Options, find_notebooks, run_notebooks
from autograder.batch.queue import cores
from autograder.grade.journal import LIBRARY, Journal, Judgement
from autograder.places import COURSE, CourseError, Places
from autograder.release.generate import release
from autograder.report.class_page import write_report
from autograder.report.feedback import write_feedback
from byhand.runtime.walls.isolation import why_no_sandbox
from byhand.words import counted

SOLVED, BLANK = "the-solution", "the-blank"
SAMPLE_LIMIT = 15.0  # seconds for one test: what each endless sample costs


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
    ran = run_notebooks(todo, Options(out=build, jobs=cores(), progress=True))
    failed = {one.notebook: one.error for one in ran if one.error}
    stamps.write_text(json.dumps({one.stem: now[one] for one in now if one not in failed}))
    what = f"lectures run: {len(now) - len(failed)} of {len(now)}"
    if len(todo) < len(now):
        what += f", {len(now) - len(todo)} of them before, and nothing changed since"
    where = f"{_short(build)}/lectures/*.html"
    return Row(what, time.monotonic() - began, where, list(failed.values()))


def prove(course: Path, build: Path, sandboxed: bool) -> Row:
    """Judge each solution and each blank as if students had handed them in."""
    began = time.monotonic()
    where = Places(course, build / "proof")
    shutil.rmtree(where.submitted, ignore_errors=True)
    for assignment in where.assignments():
        for student, path in ((SOLVED, where.source), (BLANK, where.released)):
            target = where.submitted / student / assignment / path(assignment).name
            target.parent.mkdir(parents=True)
            shutil.copyfile(path(assignment), target)
    options = Grading(sandboxed=sandboxed, jobs=cores(), told=_as_they_should)
    judgements = grade(where, where.assignments(), options=options).judgements
    problems = [sentence for one in judgements if (sentence := _unproven(one))]
    points = sum(one.max_points for one in judgements if one.student == SOLVED)
    what = (
        f"exercises proven: {len(judgements) // 2}; solutions score {points} of {points}, blanks 0"
    )
    if problems:
        what = f"exercises: {len(problems)} of {len(judgements)} proofs failed"
    return Row(what, time.monotonic() - began, _short(course / "exercises"), problems)


def as_released(course: Path, build: Path) -> Path:
    """A copy of the course whose exercises are as released: somebody may work in the others."""
    copy = build / "course"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for folder in ("solutions", "tests"):
        (copy / folder).symlink_to(course / folder)
    where = Places(copy, build / "class")
    release(where, where.assignments())
    return copy


def grade_sample(course: Path, build: Path, sandboxed: bool) -> list[Row]:
    """Grade the sample class; its grades on one page, and feedback for each student.

    A submission that does not get the points its author says it is worth is a problem.
    """
    began = time.monotonic()
    where = Places(course, build / "sample-class")
    samples = _module(course / "tests" / "submissions" / "sample_class.py")
    hand_in(samples, where)
    options = Grading(sandboxed=sandboxed, limit=SAMPLE_LIMIT, jobs=cores())
    outcome = grade(where, where.assignments(), options=options)
    pages = write_feedback(where, where.assignments(), [])
    page = write_report(where, build / "grades.html")
    problems = outcome.failures + _surprises(samples, outcome.judgements)
    what = f"students graded: {len({one.student for one in outcome.judgements})}"
    what += f"; {counted(len(outcome.judgements), 'submission')}, {outcome.new} judged now"
    what += "" if sandboxed else ", without a sandbox"
    seconds = time.monotonic() - began
    folder = f"{_short(where.feedback)}/STUDENT/"
    return [
        Row(what, seconds, _short(page), problems),
        Row(f"feedback pages: {len(pages)}", 0.0, folder),
    ]


def hand_in(samples: ModuleType, where: Places) -> None:
    """Write what the samples hand in to submitted/; a class with other students starts anew."""
    known = {one.student for one in Journal(where.journal).latest()}
    if known - {case.student for case in samples.CASES}:
        shutil.rmtree(where.class_dir)
    shutil.rmtree(where.submitted, ignore_errors=True)
    samples.write_class(where.submitted)


def table(rows: Iterable[Row]) -> str:
    """The rows in columns, and below them what went wrong."""
    rows = list(rows)
    wide = max(len(row.what) for row in rows)
    lines = [f"{row.what:{wide}}  {row.seconds:6.1f} s  {row.where}" for row in rows if row.seconds]
    lines += [f"{row.what:{wide}}  {'':8}  {row.where}" for row in rows if not row.seconds]
    lines += [f"failed: {problem}" for row in rows for problem in row.problems]
    return "\n".join(lines)


def main() -> int:
    """Do it all; 0 when nothing failed."""
    build = COURSE / "build"
    reason = why_no_sandbox()
    if reason:
        print(f"The course grades its own sample class unsandboxed: {reason}.", flush=True)
    try:
        print("Running the lectures.", flush=True)
        rows = [run_lectures(COURSE / "lectures", build)]
        print("Proving the exercises: solutions must score full, blanks zero.", flush=True)
        course = as_released(COURSE, build)
        rows += [prove(course, build, not reason)]
        print("Grading the sample class.", flush=True)
        rows += grade_sample(course, build, not reason)
    except CourseError as error:
        print(f"make course stopped: {error}", file=sys.stderr)
        return 1
    print("\n" + table(rows) + "\n\n" + next_steps(build / "sample-class"))
    return 1 if any(row.problems for row in rows) else 0


def next_steps(sample_class: Path) -> str:
    """What to type now, as it works where `make course` was typed."""
    steps = {
        "make lab": "lectures and exercises in JupyterLab, in a copy that is yours",
        f"CLASS={_short(sample_class)} make lab": "the sample class in the formgrader",
        f". {_short(Path(sys.prefix))}/bin/activate": "then: autograder --help",
    }
    wide = max(map(len, steps))
    return "Next:\n" + "\n".join(f"  {step:{wide}}  {what}" for step, what in steps.items())


def _inputs(notebook: Path) -> str:
    """All that decides what a lecture shows: itself, the library, torch."""
    digest = hashlib.sha256(notebook.read_bytes() + torch.__version__.encode())
    for path in sorted(LIBRARY.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _unproven(judgement: Judgement) -> str:
    """A sentence when a solution lost a point or a blank won one; else nothing."""
    expected = judgement.max_points if judgement.student == SOLVED else 0
    if judgement.points == expected and judgement.complete:
        return ""
    wrong = [v for v in judgement.verdicts if (v.points == v.max_points) != bool(expected)]
    named = "; ".join(f"{v.question} {v.verdict} {v.message.partition(chr(10))[0]}" for v in wrong)
    who = judgement.student.replace("-", " ")
    return f"{who} of {judgement.assignment} scores {judgement.points}, not {expected}: {named}"


def _as_they_should(outcome: Outcome) -> str:
    good = sum(not _unproven(judgement) for judgement in outcome.judgements)
    return f"{good} of {len(outcome.judgements)} as they should"


def _surprises(samples: ModuleType, judgements: list[Judgement]) -> list[str]:
    """A sentence for each submission that is not worth what was expected."""
    worth = {(case.student, case.assignment): case.points for case in samples.CASES}
    return [
        f"{one.student}, {one.assignment} got {counted(one.points, 'point')}, not {expected}"
        for one in judgements
        if one.points != (expected := worth[one.student, one.assignment])
    ]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
