"""Graded cells that were added or removed after hand-ins were recorded: said, and taken over.

nbgrader ties the points in its gradebook to cells, and refuses another set of cells once there are
submissions. `take_over` gives the gradebook the new set and keeps all that belongs to cells that
are in both: points, marks and comments by people, hand-in times.
"""

import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import nbformat
from nbgrader.api import Comment, Grade, Gradebook, MissingEntry, Notebook
from sqlalchemy.exc import OperationalError

from autograder.cells import is_grade, is_locked, is_solution
from autograder.places import CourseError, Places, why_not_written
from byhand.words import counted

Cells = dict[str, dict[str, dict]]  # by table of the gradebook, by name: what is entered


class GradebookError(CourseError):
    """The gradebook cannot be read or written now, whatever for."""


def refuse(where: Places, assignment: str) -> None:
    """See that the gradebook can hold the cells of the source notebook.

    Raises:
        CourseError: submissions were recorded with other cells; the message says which, and how
            to go on.
    """
    with _entry(where, assignment) as (_, notebook):
        if notebook is None or not notebook.submissions:
            return
        old, new = _in_gradebook(notebook), _in_source(where, assignment)
        added, removed = _names(new, old), _names(old, new)
        number = len(notebook.submissions)
        handed_in = counted(number, "submission") + (" was" if number == 1 else " were")
    if not added and not removed:
        return
    raise CourseError(
        f"{assignment}: its cells are not those that {handed_in} recorded with."
        f" Added: {', '.join(added) or 'none'}. Removed: {', '.join(removed) or 'none'}. The"
        " gradebook was not changed. To go on with the new cells: autograder grade"
        f" {assignment} --changed-cells judges all submissions again, and keeps the marks and"
        " comments of people on cells that are still there, and a copy of the gradebook. To go"
        f" back: undo the change in {assignment}'s source notebook."
    )


def take_over(where: Places, assignment: str) -> Path | None:
    """Give the gradebook the source's cells; a copy of what it was, None where nothing differs."""
    with _entry(where, assignment) as (gradebook, notebook):
        new = _in_source(where, assignment)
        old = _in_gradebook(notebook) if notebook else new
        if not _names(new, old) and not _names(old, new):
            return None
        kept = _copy(where.gradebook)
        for table, cells in new.items():
            for cell in [c for c in getattr(notebook, f"{table}_cells") if c.name not in cells]:
                for one in [*getattr(cell, "grades", ()), *getattr(cell, "comments", ())]:
                    gradebook.db.delete(one)
                gradebook.db.delete(cell)
            gradebook.db.commit()
            for name in cells.keys() - old[table].keys():
                add = getattr(gradebook, f"add_{table}_cell")
                cell = add(name, notebook.name, assignment, **cells[name])
                entry = {"grade": Grade, "solution": Comment}.get(table)
                for submission in notebook.submissions if entry else ():
                    gradebook.db.add(entry(cell_id=cell.id, notebook_id=submission.id))
        gradebook.db.commit()
    return kept


@contextmanager
def opened_gradebook(where: Places) -> Iterator[Gradebook]:
    """nbgrader's database of a class, without SQLAlchemy's warnings about nbgrader's own code.

    Raises:
        GradebookError: another program has locked it, or there is no room on the disk.
    """
    try:
        with warnings.catch_warnings(), Gradebook(f"sqlite:///{where.gradebook}") as gradebook:
            warnings.simplefilter("ignore")
            yield gradebook
    except OperationalError as error:
        why = why_not_written(str(error)) or f"the gradebook cannot be used: {error.orig}"
        raise GradebookError(why) from None


@contextmanager
def _entry(where: Places, assignment: str) -> Iterator[tuple[Gradebook | None, Notebook | None]]:
    """The open gradebook and an assignment's notebook in it; None where there is none."""
    if not where.gradebook.exists():
        yield None, None
        return
    with opened_gradebook(where) as gradebook:
        notebook = None
        with suppress(MissingEntry):
            notebook = gradebook.find_notebook(where.source(assignment).stem, assignment)
        yield gradebook, notebook


def _in_gradebook(notebook: Notebook) -> Cells:
    return {
        "grade": {cell.name: {"max_score": cell.max_score} for cell in notebook.grade_cells},
        "solution": {cell.name: {} for cell in notebook.solution_cells},
        "source": {cell.name: {} for cell in notebook.source_cells},
    }


def _in_source(where: Places, assignment: str) -> Cells:
    cells = nbformat.read(where.source(assignment), as_version=4).cells
    ours = [cell for cell in cells if is_grade(cell) or is_solution(cell) or is_locked(cell)]
    graded = {
        cell.id: {"max_score": float(cell.metadata.nbgrader.points), "cell_type": cell.cell_type}
        for cell in ours
        if is_grade(cell)
    }
    solutions = {cell.id: {} for cell in ours if is_solution(cell)}
    sources = {cell.id: {"cell_type": cell.cell_type} for cell in ours}
    return {"grade": graded, "solution": solutions, "source": sources}


def _names(cells: Cells, others: Cells) -> list[str]:
    """The cells of one set that the other lacks, those with points first."""
    points = {name: about["max_score"] for name, about in cells["grade"].items()}
    missing = {name for table in cells for name in cells[table].keys() - others[table].keys()}
    return [
        f"{name} ({points[name]:g} points)" if name in points else name
        for name in sorted(missing, key=lambda name: (name not in points, name))
    ]


def _copy(gradebook: Path) -> Path:
    """The gradebook as it is now, under a name that says when."""
    kept = gradebook.with_name(f"{gradebook.stem}-{time.strftime('%Y%m%d-%H%M%S')}.db")
    with closing(sqlite3.connect(gradebook)) as source, closing(sqlite3.connect(kept)) as target:
        source.backup(target)
    return kept
