"""What a student handed in, rebuilt around the notebook that was released.

The result holds every released cell, in order, as released, with three things taken from the
submission: the text of its solution cells (found by grade_id), of the released cells that are
there to try things, and the student's own code cells, as bare code, each after the released cell
it followed. So edited, deleted, copied or retagged
test cells, points and flags change nothing; each is noted in a sentence for the student.

A solution cell that appears several times (copied, or split in two): the last copy that differs
from the released blank is the answer, and changed copies before it run before it, as they would
in a notebook. A deleted one becomes empty, so that the same function written in another cell
still counts.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.cells import defined_names
from autograder.collect.notebook import Cell, found_cells
from autograder.pages import task_cells

MAX_CELL_CHARACTERS = 200_000
MAX_OWN_CELLS = 3_000
MAX_OWN_CHARACTERS = 1_000_000  # of all of them
SETTINGS = ("points", "grade", "solution", "locked", "task")


@dataclass
class Intake:
    """A clean notebook, and what the student should know about how it was made."""

    notebook: NotebookNode
    notes: list[str] = field(default_factory=list)


def restore(submitted: bytes | None, released: NotebookNode) -> Intake:
    """The released notebook with the student's work in it. Never raises for any bytes."""
    cells, why_none = found_cells(submitted)
    return rebuild(cells, released, [why_none] if why_none else [])


def rebuild(cells: list[Cell], released: NotebookNode, notes: list[str]) -> Intake:
    """The released notebook with the work in `cells`, and `notes` with what was changed back."""
    notebook = copy.deepcopy(released)
    mine = {key(cell): cell for cell in notebook.cells}
    groups: dict[str, list[Cell]] = {}
    own: dict[str, list[str]] = {}
    notes, anchor = list(notes), ""
    for cell in cells:
        name = name_in(cell, mine)
        if name:
            groups.setdefault(name, []).append(cell)
            anchor = name
        elif cell.cell_type == "code" and cell.source.strip():
            own.setdefault(anchor, []).append(cell.source)
    previous = ""
    for name, cell in mine.items() if cells else ():
        earlier = _earlier_answers(cell, groups.get(name, []))
        own.setdefault(previous, []).extend(earlier)
        notes += _put_back(cell, groups.get(name, []))
        previous = name
    notes += _add_own_cells(notebook, own)
    nbformat.validate(notebook)
    return Intake(notebook, notes)


def unanswered(
    notebook: NotebookNode, released: NotebookNode, source: NotebookNode
) -> dict[str, list[str]]:
    """By test cell: the solution cells that it grades, where nothing was written in any of them.

    A function that a student's own cell speaks of may have been written there.
    """
    given = {cell.id: cell.source for cell in released.cells}
    mine = {cell.id: cell.source for cell in notebook.cells}
    own = "\n".join(text for name, text in mine.items() if name not in given)
    defines = {cell.id: cell.source for cell in source.cells}
    return {
        test: names
        for test, names in task_cells(source).items()
        if all(mine[name] == given.get(name) for name in names)
        and not any(word in own for name in names for word in defined_names(defines[name]))
    }


def key(cell: NotebookNode) -> str:
    """What a released cell is found by: its grade_id, else its cell id."""
    return cell.metadata.get("nbgrader", {}).get("grade_id") or cell.id


def name_in(cell: Cell, released: dict[str, NotebookNode]) -> str | None:
    """The released cell that `cell` is a copy of, by grade_id, cell id or unchanged text."""
    for name in (cell.grade_id, cell.cell_id):
        if name in released:
            return name
    same = (name for name, mine in released.items() if mine.source == cell.source)
    return next(same, None) if cell.source.strip() else None


def is_answer(cell: NotebookNode) -> bool:
    """Whether students write in this released cell."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _earlier_answers(cell: NotebookNode, copies: list[Cell]) -> list[str]:
    """The changed copies of a solution cell before the one that is the answer."""
    if not is_answer(cell) or cell.cell_type != "code":
        return []
    return [c.source for c in copies if _text(c.source) != _text(cell.source)][:-1]


def _put_back(cell: NotebookNode, copies: list[Cell]) -> list[str]:
    """Fill one released cell from its copies in the submission; what to say about it."""
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    if name is None:
        return _take_trial(cell, copies)
    if is_answer(cell):
        return _take_answer(cell, name, copies)
    kind = "test cell" if cell.metadata.nbgrader.grade else "locked cell"
    if not copies:
        return [f"The {kind} {name} was missing. It was put back and counts as usual."]
    notes = []
    if any(_text(c.source) != _text(cell.source) or c.cell_type != cell.cell_type for c in copies):
        notes.append(f"The {kind} {name} had been edited. The released one was used instead.")
    if len(copies) > 1:
        notes.append(f"The {kind} {name} was there {len(copies)} times. It was used once.")
    return notes + _settings_note(cell, name, copies)


def _take_trial(cell: NotebookNode, copies: list[Cell]) -> list[str]:
    """A released cell without a mark: code as the student left it, prose as released."""
    code = [c.source for c in copies if c.cell_type == "code"]
    if cell.cell_type == "code" and code and len(code[-1]) <= MAX_CELL_CHARACTERS:
        cell.source = code[-1]
    return []


def _take_answer(cell: NotebookNode, name: str, copies: list[Cell]) -> list[str]:
    blank, notes = cell.source, []
    if not copies:
        cell.source = ""
        return [f"The cell {name} was missing. Your other cells were graded as they stand."]
    written = [c for c in copies if _text(c.source) != _text(blank)] or copies
    chosen = written[-1]
    cell.source = chosen.source
    if len(copies) > 1:
        notes.append(
            f"The cell {name} was there {len(copies)} times. The last one that you"
            " changed is your answer."
        )
    if chosen.cell_type != cell.cell_type:
        notes.append(
            f"The cell {name} had become a {chosen.cell_type} cell. It was graded as"
            f" {cell.cell_type}."
        )
    if len(cell.source) > MAX_CELL_CHARACTERS:
        cell.source = blank
        notes.append(
            f"The cell {name} was longer than {MAX_CELL_CHARACTERS:,} characters and was left out."
        )
    return notes + _settings_note(cell, name, copies)


def _settings_note(cell: NotebookNode, name: str, copies: list[Cell]) -> list[str]:
    """A sentence where a copy has other points, flags or tags than the released cell."""
    mine = cell.metadata.nbgrader
    tags = list(cell.metadata.get("tags", []))
    for other in copies:
        theirs = other.settings
        changed = [s for s in SETTINGS if s in theirs and theirs[s] != mine.get(s, False)]
        if changed or other.tags != tags:
            what = ", ".join(changed + (["tags"] if other.tags != tags else []))
            return [
                f"The settings of the cell {name} had been changed ({what}). The released"
                " ones were used."
            ]
    return []


def _add_own_cells(notebook: NotebookNode, own: dict[str, list[str]]) -> list[str]:
    """Insert the student's code cells after the released cell that each followed."""
    notes, cells, count, room = [], [], 0, MAX_OWN_CHARACTERS
    for cell in [None, *notebook.cells]:
        if cell is not None:
            cells.append(cell)
        for source in own.get("" if cell is None else key(cell), []):
            count += 1
            if count > MAX_OWN_CELLS or len(source) > min(room, MAX_CELL_CHARACTERS):
                notes = ["Some of your own cells were too long or too many and were left out."]
            else:
                cells.append(new_code_cell(source, id=f"own-{count}"))
                room -= len(source)
    notebook.cells = cells
    return notes


def _text(source: str) -> str:
    """Source without what editors change by themselves: trailing blanks."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())
