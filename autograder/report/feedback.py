"""A page for each student and assignment: verdicts first, then each task with its message."""

import io
import zipfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.cells import is_grade, is_solution
from autograder.collect.hand_ins import who_is_who
from autograder.collect.inbox import files
from autograder.collect.names import MOODLE, SENT, sender_of
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, everyone, read_marks
from autograder.grade.verdicts import FOREIGN, INFRASTRUCTURE, NO_ANSWER, UNREADABLE
from autograder.pages import render, task_cells, task_titles, title_of, write_page
from autograder.places import CourseError, Places
from autograder.report.board import Board, boards

MEANINGS = {
    "passed": "Every part of the test passed, the hidden ones included.",
    "failed": "A check was not met, or your code raised an exception.",
    "deadlock": "The ranks wait for each other for ever: their calls do not fit together.",
    "timeout": "The ranks were still running when the time for this test was over.",
    "crashed": "A rank's process ended before its function returned.",
    "resource": "A rank used more memory, output or time than it may.",
    "tampered": "A rank sent back something that this library does not write.",
    "blank": "Nothing was written in this task. Write your answer in its cell and hand in again.",
    "another assignment's": "The notebook that came is not this assignment's.",
    "unreadable": "There was no notebook that could be read.",
    "infrastructure": "The test was not run, through no fault of yours, and will be run again."
    " You need do nothing; your instructor sees why.",
}
MAX_SHOWN = 20_000  # characters of a task's cells, some 500 lines; of all of one's own cells, too


def write_feedback(where: Places, assignments: list[str], students: list[str]) -> list[Path]:
    """Write the pages of these assignments and students (all of them for none named).

    Raises:
        CourseError: one who was named handed in nothing.
    """
    known = everyone(where, assignments)
    if unknown := {*students} - {one.student for one in known}:
        raise CourseError(f"nothing was handed in by {', '.join(sorted(unknown))}")
    wanted = [j for j in known if not students or j.student in students]
    marks, pages = read_marks(where, wanted), []
    for name, some in groupby(wanted, key=lambda judgement: judgement.assignment):
        source = nbformat.read(where.source(name), as_version=4)
        of_class = [j for j in known if j.assignment == name]
        seen = boards(of_class, task_titles(source), named=True)
        for one in some:
            html = page(one, source, marks[name, one.student], seen)
            pages.append(write_page(page_path(where, one), html))
    return pages


def moodle_folders(assignment: str, download: Path) -> dict[str, str]:
    """The folder of each participant in Moodle's own download, by Moodle's number.

    Raises:
        CourseError: nothing in the download is called as Moodle calls it.
    """
    lms = f"{MOODLE} {assignment}"
    senders = {file.path.parts[0]: sender_of(file.path, assignment) for file in files(download)}
    folders = {one.number: first for first, one in senders.items() if one and one.lms == lms}
    if not folders:
        raise CourseError(
            f"{download} is no download of Moodle's: it has no NAME_NUMBER{SENT}file_"
        )
    return folders


def for_moodle(
    where: Places, assignment: str, folders: dict[str, str], pages: list[Path]
) -> tuple[Path, list[str]]:
    """A zip of these pages, each in the folder that Moodle's own download had for the student.

    Also a sentence for each folder and page that has none. Moodle's number says whose page is
    whose: two people may have one name, and the class may spell one otherwise.
    """
    left, packed = [], io.BytesIO()
    known = who_is_who(where).get(f"{MOODLE} {assignment}", {})
    of = {page.parts[-3]: page for page in pages}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, first in folders.items():
            if page := of.pop(known.get(number, ""), None):
                folder = f"{first.partition(SENT)[0]}{SENT}file_"
                archive.write(page, f"{folder}/{page.name}")
            else:
                left.append(f"{first}: there is no page for number {number}")
    left += [f"{student}: there is no folder for this page" for student in of]
    return write_page(where.feedback / f"{assignment}.zip", packed.getvalue()), left


def page_path(where: Places, judgement: Judgement) -> Path:
    """Where the page of a judgement lies: where nbgrader would put it."""
    stem = where.source(judgement.assignment).stem
    return where.feedback / judgement.student / judgement.assignment / f"{stem}.html"


def page(
    judgement: Judgement, source: NotebookNode, marks: Marks, of_class: Sequence[Board] = ()
) -> str:
    """One student's page as HTML, every text escaped; of the source, only headings appear.

    `of_class`: the boards that the class sees.
    """
    is_theirs = not {FOREIGN, UNREADABLE} & {verdict.verdict for verdict in judgement.verdicts}
    written = {name: text for name, _, text in judgement.cells if is_theirs}
    cells = {test: [n for n in names if n in written] for test, names in task_cells(source).items()}
    own = [name for name in written if name not in {cell.id for cell in source.cells}]
    return render(
        "feedback.html",
        title=title_of(source),
        titles=task_titles(source),
        meanings=MEANINGS,
        boards=of_class,
        never_asked=(*NO_ANSWER, INFRASTRUCTURE),
        judgement=judgement,
        marks=marks,
        when=judgement.when.replace("T", " ").replace("+00:00", " UTC"),
        code={test: _listings(written, names) for test, names in cells.items()},
        answers=[cell for cell in source.cells if is_grade(cell) and is_solution(cell)],
        written=written,
        own=_listings(written, own),
    )


def _listings(written: dict[str, str], names: list[str]) -> list[tuple[str, list[str], int]]:
    """Cells by name: lines, MAX_SHOWN characters of all together, and how many are left out."""
    listings, room = [], MAX_SHOWN
    for name in names:
        shown = written[name][:room]
        listings.append((name, shown.splitlines(), len(written[name]) - len(shown)))
        room -= len(shown)
    return listings
