"""What a source notebook must be before it may be released, checked cell by cell.

`problems` is pure: a notebook in, sentences out. nbgrader itself accepts most of what is refused
here, and the mistake then shows up as a wrong mark months later.
"""

from __future__ import annotations

import re
import symtable
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.cells import is_grade, is_locked, is_solution
from autograder.places import CourseError
from byhand.words import counted

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
_HEADER = re.compile(
    r"^Time: about \d+ minutes · Points: (\d+) · Needs: .+? · Difficulty: [123] of 3\s*$",
    re.MULTILINE,
)
TEST_NAMES = ("check_", "drive_", "_")  # what a test cell's own names begin with
_EXAMPLE = "Time: about 45 minutes · Points: 6 · Needs: lecture 3 · Difficulty: 2 of 3"


def check(source: Path) -> None:
    """Refuse a source notebook whose ids, points, locks or stated total are wrong."""
    import nbformat

    try:
        notebook = nbformat.read(source, as_version=nbformat.NO_CONVERT)
    except (ValueError, OSError) as error:
        raise CourseError(f"{source} cannot be read as a notebook: {error}") from None
    if found := problems(notebook):
        raise CourseError("\n  ".join([f"{source} cannot be released:", *found]))


def problems(notebook: NotebookNode) -> list[str]:
    """One sentence for each rule that the notebook breaks, naming the cell."""
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        version = f"{notebook.nbformat}.{notebook.nbformat_minor}"
        return [f"the notebook format is {version}, not 4.5: make format"]
    if found := list(_ids(notebook.cells)):
        return found
    for cell in notebook.cells:
        rules = _settings(cell), _markers(cell), _names(cell)
        found += [f"cell {cell.id}: {what}" for broken in rules for what in broken]
    return [*found, *_pairs(notebook.cells), *_total(notebook.cells)]


def _ids(cells: list[NotebookNode]) -> Iterator[str]:
    for name, count in Counter(cell.id for cell in cells).items():
        if count > 1:
            yield f"cell {name}: the id is used {counted(count, 'time')}"
    for cell in cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
        if grade_id != cell.id:
            yield f"cell {cell.id}: its grade_id is {grade_id}; both must be the same"


def _settings(cell: NotebookNode) -> Iterator[str]:
    """What is wrong with one cell's settings for nbgrader."""
    data = cell.metadata.get("nbgrader")
    if data is None:
        return
    if is_grade(cell) and (type(data.get("points")) is not int or data.points < 1):
        yield f"its points are {data.get('points')!r}; they must be a whole number above 0"
    if not is_grade(cell) and "points" in data:
        yield "it has points but is not graded"
    if is_solution(cell) and data.get("locked"):
        yield "students write in it, so it must not be locked"
    if not is_solution(cell) and not data.get("locked"):
        yield "students must not change it, so it must be locked"
    if cell.cell_type == "markdown" and is_grade(cell) != is_solution(cell):
        yield "a written answer must be both solution and graded, with points"


def _markers(cell: NotebookNode) -> Iterator[str]:
    """Markers of solutions and hidden tests: paired, and in the cells where they belong."""
    text = cell.source
    for begin, end in ((SOLUTION, END_SOLUTION), (HIDDEN, END_HIDDEN)):
        if text.count(begin) != text.count(end):
            times = [counted(text.count(marker), "time") for marker in (begin, end)]
            yield f"{times[0]} {begin!r} but {times[1]} {end!r}"
    if SOLUTION in text and not is_solution(cell):
        yield "it holds a solution but is not a solution cell: students would get it"
    if is_solution(cell) and cell.cell_type == "code" and SOLUTION not in text:
        yield f"it has no {SOLUTION!r}: students would get no signature to fill in"
    if HIDDEN in text and (is_solution(cell) or not is_grade(cell)):
        yield "it holds hidden tests but is not a test cell: students would get them"
    if text.partition(END_HIDDEN)[2].strip():
        yield (
            f"something comes after its first {END_HIDDEN!r}: hidden tests stand last, in one"
            " block, or what their ranks leave behind is told by a visible one"
        )


def _names(cell: NotebookNode) -> Iterator[str]:
    """What a test binds at its top level, loops' variables and imports too: no student's names."""
    if cell.cell_type != "code" or is_solution(cell) or not is_grade(cell):
        return
    try:
        symbols = symtable.symtable(cell.source, cell.id, "exec").get_symbols()
    except SyntaxError as error:
        yield f"it is not Python: {error}"
        return
    bound = sorted(s.get_name() for s in symbols if s.is_assigned() or s.is_imported())
    if taken := [name for name in bound if not name.startswith(TEST_NAMES)]:
        yield (
            f"it defines {', '.join(taken)}: in JupyterLab a student's helper of such a name would"
            f" be overwritten. A test's own names begin with {', '.join(TEST_NAMES[:-1])} or"
            f" {TEST_NAMES[-1]}, and what it imports stands in the first code cell or in a function"
        )


def _pairs(cells: list[NotebookNode]) -> Iterator[str]:
    """Every code task is one or more solution cells and then the test cell that grades them."""
    waiting: list[str] = []
    for cell in (cell for cell in cells if cell.cell_type == "code"):
        if is_solution(cell):
            waiting += [] if is_grade(cell) else [cell.id]
        elif is_grade(cell):
            if not cell.id.startswith("test-"):
                yield f"cell {cell.id}: the name of a test cell begins with test-"
            if not waiting:
                yield f"cell {cell.id}: it comes after no solution cell that it could grade"
            waiting = []
    for name in waiting:
        yield f"cell {name}: no test cell after it grades it"
    if not any(is_locked(cell) and not is_grade(cell) for cell in cells):
        yield "no locked cell imports what the tests use; add one as the first code cell"


def _total(cells: list[NotebookNode]) -> Iterator[str]:
    stated = [(cell.id, int(points)) for cell in cells for points in _HEADER.findall(cell.source)]
    if not stated:
        yield f"no cell has the header line {_EXAMPLE!r}"
    points = [cell.metadata.nbgrader.get("points") for cell in cells if is_grade(cell)]
    total = sum(number for number in points if isinstance(number, int))
    for name, number in stated:
        if number != total:
            yield f"cell {name}: it states Points: {number}, but the graded cells add up to {total}"
