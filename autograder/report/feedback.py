"""A page for each student and assignment: verdicts first, then each task with its message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.cells import is_grade, is_solution
from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.grade.verdicts import Verdict
from autograder.pages import render, task_cells, task_titles, title_of, write_page
from autograder.places import Places

MEANINGS = {
    "passed": "Every part of the test passed, the hidden ones included.",
    "failed": "A check was not met, or your code raised an exception.",
    "deadlock": "The ranks wait for each other for ever: their calls do not fit together.",
    "timeout": "The ranks were still running when the time for this test was over.",
    "crashed": "A rank's process ended before its function returned.",
    "resource": "A rank used more memory, output or time than it may.",
    "tampered": "A rank sent back something that this library does not write.",
    "infrastructure": "The test could not be run, through no fault of yours. It will be run again.",
}


MAX_SHOWN = 20_000  # characters of a task's cells, some 500 lines; of all of one's own cells, too


@dataclass(frozen=True)
class Listing:
    """The beginning of one cell, and how many characters of it are left out."""

    name: str
    lines: list[str]
    num_left_out: int


@dataclass(frozen=True)
class Task:
    """One row and one section of the page."""

    title: str
    verdict: Verdict
    points: float
    comment: str
    code: list[Listing]

    @property
    def meaning(self) -> str:
        """The verdict in a sentence."""
        return MEANINGS[self.verdict.verdict]


@dataclass(frozen=True)
class Answer:
    """An answer in words, marked by a person."""

    name: str
    title: str
    text: str
    points: float
    max_points: float
    waiting: bool
    comment: str


def write_feedback(where: Places, assignments: list[str], students: list[str]) -> list[Path]:
    """Write the pages of these assignments and students (all of them for none named)."""
    latest = Journal(where.journal).latest()
    wanted = [j for j in latest if j.assignment in assignments]
    wanted = [j for j in wanted if not students or j.student in students]
    marks = read_marks(where, wanted)
    sources = {name: nbformat.read(where.source(name), as_version=4)
               for name in {j.assignment for j in wanted}}  # fmt: skip
    return [
        write_page(page_path(where, j), page(j, sources[j.assignment],
                                             marks[j.assignment, j.student]))
        for j in wanted
    ]  # fmt: skip


def page_path(where: Places, judgement: Judgement) -> Path:
    """Where the page of a judgement lies: where nbgrader would put it."""
    stem = where.source(judgement.assignment).stem
    return where.feedback / judgement.student / judgement.assignment / f"{stem}.html"


def page(judgement: Judgement, source: NotebookNode, marks: Marks) -> str:
    """One student's page as HTML, every text escaped; of the source, only headings appear."""
    written = {name: text for name, _, text in judgement.cells}
    titles, cells = task_titles(source), task_cells(source)
    tasks = [
        Task(titles.get(v.question, v.question), v, marks.by_cell.get(v.question, v.points),
             marks.comments.get(v.question, ""),
             _listings([(name, written.get(name, "")) for name in cells.get(v.question, [])]))
        for v in judgement.verdicts
    ]  # fmt: skip
    answers = [_answer(cell, titles, written, marks) for cell in source.cells
               if is_grade(cell) and is_solution(cell)]  # fmt: skip
    ours = {cell.id for cell in source.cells}
    own = _listings([(name, text) for name, _, text in judgement.cells if name not in ours])
    return render("feedback.html", title=title_of(source), judgement=judgement, marks=marks,
                  when=judgement.when.replace("T", " ").replace("+00:00", " UTC"),
                  tasks=tasks, answers=answers, own=own)  # fmt: skip


def _listings(cells: list[tuple[str, str]]) -> list[Listing]:
    """Cells as numbered lines: MAX_SHOWN characters of all together, from the first cell on."""
    listings, room = [], MAX_SHOWN
    for name, text in cells:
        shown = text[:room]
        listings.append(Listing(name, shown.splitlines(), len(text) - len(shown)))
        room -= len(shown)
    return listings


def _answer(cell: NotebookNode, titles: dict[str, str], written: dict[str, str],
            marks: Marks) -> Answer:  # fmt: skip
    return Answer(cell.id, f"{titles.get(cell.id, '')}: {cell.id}", written.get(cell.id, ""),
                  marks.by_cell.get(cell.id, 0), cell.metadata.nbgrader.points,
                  cell.id in marks.unmarked or cell.id not in marks.by_cell,
                  marks.comments.get(cell.id, ""))  # fmt: skip
