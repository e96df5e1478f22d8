"""What `make course` does once everything is installed; ends with a table of what it did.

1. Every lecture is executed, and its page written; again only when it or the library changed, or
   another run wrote over the page.
2. The sample class of tests/submissions is graded, recorded, and given its feedback. It also hands
   in every exercise's solution, which must score all points, and its blank, which must score none.

Both go through one queue, lectures first: they, and tests of a submission, wait for their ranks a
third of the time, so a few more are under way than there are cores.

The sample class lives in build/sample-class, and nothing else does: `autograder serve --class
build/sample-class` opens it in the formgrader.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from autograder.batch.grading import GradeOptions, grade
from autograder.batch.notebooks import find_notebooks, prepare
from autograder.batch.queue import Queue, Report, Work, cores, here, progress, together
from autograder.batch.running import Running
from autograder.grade.journal import LIBRARY
from autograder.pages import write_page
from autograder.places import COURSE, CourseError, Places
from autograder.release.generate import release
from autograder.report.class_page import write_report
from autograder.report.feedback import write_feedback
from autograder.samples import BLANK, SOLVED, Samples, hand_in, made_up, surprises
from byhand.runtime.walls.isolation import why_no_sandbox
from byhand.words import counted

PAGE = "batch/page.py", "mathml.py", "templates/lecture.html.j2", "book/pages/math.css"
MADE_BY = [Path(__file__).parent / name for name in PAGE]

ALONE = ", alone"  # behind the stamp of a lecture that ran beside no other
WAITING = 2  # so many more at a time than there are cores


@dataclass
class Row:
    """One line of the closing table: it was done `seconds` after the beginning.

    `problems` are sentences, and any of them is a failure.
    """

    what: str
    seconds: float
    where: str
    problems: list[str] = field(default_factory=list)


class Lectures:
    """The lectures of a folder: those that changed are to be run; pages go to build/lectures.

    alone: one at a time, and so are those to be run that ran beside others; for what is measured
    beside others is longer than what stands next to it on paper.
    """

    def __init__(self, folder: Path, build: Path, alone: bool = False):
        self.began, self.ended, self.build = time.monotonic(), time.monotonic(), build
        self.stamps = build / "lectures.json"
        self.known: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            self.known = dict(json.loads(self.stamps.read_text()))
        inputs = {notebook: _inputs(notebook) for notebook in find_notebooks([folder])}
        self.stamp_of = {one: of + (ALONE if alone else "") for one, of in inputs.items()}
        pages = {one: build / folder.name / f"{one.stem}.html" for one in inputs}
        changed = [
            one
            for one, stamp in self.stamp_of.items()
            if self.known.get(one.stem)
            not in [_with_page(of, pages[one]) for of in (stamp, inputs[one] + ALONE)]
        ]
        self.todo = prepare(changed, build)
        self.failed = {one.notebook: "it was not run" for one in self.todo}

    @property
    def items(self) -> list[tuple[str, str, str]]:
        """What is left to do, as work for a Running."""
        return [ran.item for ran in self.todo]

    def take(self, report: Report) -> None:
        """What became of one of the items; says where its page is."""
        ran = self.todo[report.item]
        ran.take(report)
        self.failed.pop(ran.notebook, None)
        self.known.pop(ran.notebook.stem, None)
        if ran.error is not None:
            self.failed[ran.notebook] = ran.error
        else:
            page = ran.output.with_suffix(".html")
            self.known[ran.notebook.stem] = _with_page(self.stamp_of[ran.notebook], page)
            tqdm.write(f"  {_short(page)} is there to read")
            sys.stdout.flush()
        write_page(self.stamps, json.dumps(self.known))
        self.ended = time.monotonic()

    def row(self) -> Row:
        """What became of all."""
        count = len(self.stamp_of)
        what = f"lectures run: {count - len(self.failed)} of {count}"
        if len(self.todo) < count:
            what += f", {count - len(self.todo)} of them before, and nothing changed since"
        where = f"{_short(self.build)}/lectures/*.html"
        return Row(what, self.ended - self.began, where, list(self.failed.values()))


def run_lectures(folder: Path, build: Path) -> Row:
    """Execute the lectures that changed, one at a time, and nothing else."""
    lectures = Lectures(folder, build, alone=True)
    if lectures.items:
        todo = counted(len(lectures.items), "lecture")
        print(f"Running {todo} one at a time: pages show what was measured.", flush=True)
    for report in shown(here(1))(Running(), lectures.items):
        lectures.take(report)
    return lectures.row()


def grade_class(course: Path, build: Path, sandboxed: bool, do: Queue) -> Row:
    """Grade the sample class; its grades on one page, and feedback for each student.

    Its first two students hand in each exercise's solution, which must score full, and its blank,
    which must score nothing. Whoever does not get the points that were said is a problem.
    """
    began, where = time.monotonic(), Places(course, build / "sample-class")
    where.exercises = build / "exercises"  # as released: somebody may work in the others
    release(where, where.assignments(), overwrite=True)
    samples = made_up(where, "sample_class")
    hand_in(where, samples.write_class, {SOLVED, BLANK, *(case.student for case in samples.CASES)})
    hand_in_solutions_and_blanks(where)
    worth = {(case.student, case.assignment): case.points for case in samples.CASES}
    options = GradeOptions(
        sandboxed=sandboxed,
        progress=False,
        queue=lambda work, items: do(Samples(work, worth), items),
    )
    outcome = grade(where, where.assignments(), options=options)
    pages = write_feedback(where, where.assignments(), [])
    problems = outcome.failures + surprises(outcome.judgements, worth)
    what = f"class graded: {counted(len(outcome.judgements), 'submission')}, {outcome.new} judged"
    what += f" now{'' if sandboxed else ', without a sandbox'}; {len(pages)} feedback pages"
    page = write_report(where, build / "grades.html")
    return Row(what, time.monotonic() - began, _short(page), problems)


def hand_in_solutions_and_blanks(where: Places) -> None:
    """Two students more: one hands in each exercise's solution, and one its blank."""
    for assignment in where.assignments():
        for student, path in ((SOLVED, where.source), (BLANK, where.released)):
            target = where.submitted / student / assignment / path(assignment).name
            target.parent.mkdir(parents=True)
            shutil.copyfile(path(assignment), target)


def at_once() -> int:
    """How many lectures and submissions are under way at a time."""
    return cores() + WAITING


def shown(do: Queue) -> Queue:
    """The same queue, with a progress bar."""

    def reports(work: Work, items: Sequence[Any]) -> Generator[Report]:
        with contextlib.closing(do(work, items)) as found, progress(len(items), "task") as bar:
            for report in found:
                bar.update()
                yield report

    return reports


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
        lectures = Lectures(COURSE / "lectures", build)
        todo = counted(len(lectures.items), "lecture")
        doing = f"Running {todo}, and grading" if lectures.items else "Grading"
        print(f"{doing} a class: samples, each solution, each blank.", flush=True)
        do = together(shown(here(at_once())), Running(), lectures.items, lectures.take)
        graded = grade_class(COURSE, build, not reason, do)
        rows = [lectures.row(), graded]
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
    """All that decides what a lecture's page shows: itself, the library, torch, how it is made."""
    digest = hashlib.sha256(notebook.read_bytes() + torch.__version__.encode())
    for path in [*sorted(LIBRARY.rglob("*")), *MADE_BY]:
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _with_page(stamp: str, page: Path) -> str:
    """A stamp, and which page it stands for: `autograder run` writes others to the same place."""
    shown = page.read_bytes() if page.exists() else b""
    return f"{stamp}, page {hashlib.sha256(shown).hexdigest()}"


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
