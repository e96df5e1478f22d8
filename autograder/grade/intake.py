"""What a student handed in, rebuilt around the notebook that was released.

The result holds every released cell, in order, as released, with three things taken from the
submission: the text of its solution cells (found by grade_id), of the released cells that are
there to try things, and the student's own code cells, as bare code, each after the released cell
it followed. So edited, deleted, copied or retagged
test cells, points and flags change nothing; each is noted in a sentence for the student.

A solution cell that appears several times (copied, or split in two): the last copy that differs
from the released blank is the answer, and changed copies before it run before it, as they would
in a notebook. Where changed copies stand above the cell's test and below it, the answer is one of
those above, and what stands below (a first try that was kept) runs there, too late for the test. A
deleted one becomes empty, so that the same function written in another cell still counts.

Of an answer in words, which a person reads, all changed copies count. Where there is none, what
stands in Markdown cells of the student's own right below it does.
"""

import copy
import itertools
from dataclasses import dataclass, field, replace

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.cells import defined_names, is_grade, is_solution
from autograder.collect.uploads import Cell
from autograder.pages import task_cells

MAX_CHARACTERS = 2_000_000  # of all cells of a hand-in, each of which counts A_CELL more
A_CELL = 500
SETTINGS = ("points", "grade", "solution", "locked", "task")
_TOO_LATE = (
    "The cell {} was changed above its test and again below it. The last change above counts; what"
    " stands below ran after the test, as in a notebook that runs from the top."
)
_BELOW = "The cell {} was as it was given out: what stands right below it counts as your answer."
_TOO_LONG = f"Cells beyond {MAX_CHARACTERS:,} characters were left out: your work is too long."


@dataclass
class Intake:
    """A clean notebook, and what the student should know about how it was made."""

    notebook: NotebookNode
    notes: list[str] = field(default_factory=list)


def rebuild(cells: list[Cell], released: NotebookNode) -> Intake:
    """The released notebook with the work in `cells`."""
    notebook = copy.deepcopy(released)
    mine = {cell.id: cell for cell in notebook.cells}
    copies: dict[str, list[Cell]] = {name: [] for name in mine}
    own: dict[str, list[str]] = {name: [] for name in ("", *mine)}  # by the cell that they follow
    below: dict[str, list[str]] = {name: [] for name in mine if _is_in_words(mine[name])}
    names = [name_in(cell, mine) for cell in cells]
    too_late = _below_their_test(cells, names, released)
    notes = [_TOO_LATE.format(name) for name in dict.fromkeys(too_late.values())]
    anchor, room = "", MAX_CHARACTERS
    for place, cell in enumerate(cells):
        name = None if place in too_late else names[place]
        is_own = cell.cell_type == "code" or (cell.cell_type == "markdown" and anchor in below)
        if name or (is_own and cell.source.strip()):
            cost, anchor = len(cell.source) + A_CELL, name or anchor
            if cost > room:
                notes += [] if _TOO_LONG in notes else [_TOO_LONG]
                continue
            room -= cost
            if name:
                copies[name].append(cell)
            else:
                (own if cell.cell_type == "code" else below)[anchor].append(cell.source)
    previous = ""
    for name, cell in mine.items() if cells else ():
        edits = [c.source for c in _edited(cell, copies[name])] if cell.cell_type == "code" else []
        if is_solution(cell):
            own[previous] += edits[:-1]  # the last is the answer
        elif "nbgrader" in cell.metadata and not is_grade(cell):
            own[name] = edits + own[name]
        if name in below:
            changed = [one.source for one in _edited(cell, copies[name])]
            if said := "\n\n".join(dict.fromkeys(changed or below[name])):
                copies[name] = [replace(one, source=said) for one in copies[name]]
                notes += [] if changed else [_BELOW.format(name)]
        notes += _put_back(cell, copies[name])
        previous = name
    _add_own_cells(notebook, own)
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


def answered_in_words(notebook: NotebookNode, released: NotebookNode) -> list[str]:
    """The answers that a person marks, where they are not as they were given out."""
    given = {cell.id: cell.source for cell in released.cells}
    answers = [cell for cell in notebook.cells if is_grade(cell) and is_solution(cell)]
    return [cell.id for cell in answers if cell.source != given.get(cell.id)]


def _is_in_words(cell: NotebookNode) -> bool:
    """Whether the cell is an answer that no code is."""
    return is_solution(cell) and cell.cell_type == "markdown"


def name_in(cell: Cell, released: dict[str, NotebookNode]) -> str | None:
    """The released cell that `cell` is a copy of, by grade_id, cell id or unchanged text."""
    for name in cell.names:
        if name in released:
            return name
    same = (name for name, mine in released.items() if mine.source == cell.source)
    return next(same, None) if cell.source.strip() else None


def _below_their_test(
    cells: list[Cell], names: list[str | None], released: NotebookNode
) -> dict[int, str]:
    """Where changed copies of an answer stand that its test cannot have seen, and whose they are.

    They stand below the test's last copy, and one that speaks of what the cell defines stands above
    it: an answer that stands only below its test was written there, and counts.
    """
    given = {cell.id: cell for cell in released.cells}
    last = {name: place for place, name in enumerate(names)}
    found: dict[int, str] = {}
    for test, answers in task_cells(released).items():
        for answer in answers if test in last else ():
            copies = [place for place, name in enumerate(names) if name == answer]
            changed = [place for place in copies if _edited(given[answer], [cells[place]])]
            above = "\n".join(cells[place].source for place in changed if place < last[test])
            if any(word in above for word in defined_names(given[answer].source)):
                found |= {place: answer for place in changed if place > last[test]}
    return found


def _edited(cell: NotebookNode, copies: list[Cell]) -> list[Cell]:
    """The copies of a released cell whose text is not as it was given out."""
    return [one for one in copies if _text(one.source) != _text(cell.source)]


def _put_back(cell: NotebookNode, copies: list[Cell]) -> list[str]:
    """Fill one released cell from its copies in the submission; what to say about it."""
    if "nbgrader" not in cell.metadata:  # no mark depends on it: code as the student left it
        code = [one.source for one in copies if one.cell_type == cell.cell_type == "code"]
        cell.source = code[-1] if code else cell.source
        return []
    kind, then = "locked cell", "The released one was used, and then yours."
    if is_solution(cell):
        kind, then = "cell", "Your last change to it counts, and so do your other cells."
        written = _edited(cell, copies) or copies
        cell.source = written[-1].source if written else ""
    elif is_grade(cell):
        kind, then = "test cell", "The released one was used."
    if changed := ", ".join(_changed(cell, copies)):
        return [f"The {kind} {cell.id} was not as it was given out ({changed}). {then}"]
    return []


def _changed(cell: NotebookNode, copies: list[Cell]) -> list[str]:
    """In what the copies of a cell differ from it, but for an answer's text."""
    if not copies:
        return ["missing"]
    mine, tags = cell.metadata.nbgrader, list(cell.metadata.get("tags", []))
    found = ["edited"] if _edited(cell, copies) and not is_solution(cell) else []
    found += [f"there {len(copies)} times"] if len(copies) > 1 else []
    kinds = {one.cell_type for one in copies} - {cell.cell_type}
    found += [f"made a {kind} cell" for kind in sorted(kinds)]
    usual = {name: mine.get(name, False) for name in SETTINGS}
    theirs = [{name: one.settings.get(name, usual[name]) for name in SETTINGS} for one in copies]
    found += [name for name in SETTINGS if any(one[name] != usual[name] for one in theirs)]
    return found + (["tags"] if any(one.tags != tags for one in copies) else [])


def _add_own_cells(notebook: NotebookNode, own: dict[str, list[str]]) -> None:
    """Insert the student's code cells after the released cell that each followed."""
    ids = (f"own-{number}" for number in itertools.count(1))
    cells = [new_code_cell(source, id=next(ids)) for source in own[""]]
    for cell in notebook.cells:
        cells += [cell, *(new_code_cell(source, id=next(ids)) for source in own[cell.id])]
    notebook.cells = cells


def _text(source: str) -> str:
    """Source without what editors change by themselves: trailing blanks."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())
