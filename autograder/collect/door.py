"""The door: whatever lies in a student's place becomes a hand-in, and nothing behind it sees more.

A hand-in has a student's name that every file and page can hold, cells that are text, and where
there is nothing to judge a standing and a sentence why.
"""

import functools
import json
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from autograder.collect.inbox import in_folder
from autograder.collect.names import student_name
from autograder.collect.uploads import Cell, found_cells, notebook_of, printable
from autograder.places import Places

BLANK, FOREIGN, UNREADABLE = "blank", "another assignment's", "unreadable"
_NO_FOLDER = "A link or a file lies where the folder of this submission should be: it is not read."


@dataclass(frozen=True)
class HandIn:
    """What one student handed in for one assignment: cells, and what was noticed on the way.

    `standing` is FOREIGN or UNREADABLE, with `why` in a sentence for the student, where nothing
    can be judged; BLANK where all cells are as they were given out; else "".
    """

    cells: list[Cell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    standing: str = ""
    why: str = ""


def hand_ins(where: Places, assignments: Collection[str]) -> list[tuple[str, str]]:
    """(student, assignment) of all that lies in submitted/, by assignment."""
    found = {
        (assignment, student_name(folder.name))
        for folder in _visible(where.submitted)
        for assignment in assignments
        if os.path.lexists(folder / assignment)
    }
    return [(student, assignment) for assignment, student in sorted(found)]


def settle(where: Places) -> tuple[list[str], list[str]]:
    """Give folders whose names no page can hold another one: a sentence for each, and each stray.

    A stray is what lies in submitted/ and is no assignment's: nobody would grade it.
    """
    renamed, strays, known = [], [], {*where.assignments()}
    for folder in _visible(where.submitted):
        name = student_name(folder.name)
        if name != folder.name:
            old = printable(folder.name)
            folder = folder.rename(folder.with_name(name))
            renamed.append(f"submitted/{old} is no name for a student, and is called {name} now")
        inside = _visible(folder)
        if not inside:
            strays.append(f"submitted/{name} is no folder with a submission in it")
        others = [printable(path.name) for path in inside if path.name not in known]
        strays += [f"submitted/{name}/{other}: no assignment is called so" for other in others]
    return renamed, strays


def opened(where: Places, student: str, assignment: str) -> HandIn:
    """What a student handed in. Never raises for the student's files."""
    folder, stem = where.submitted / student / assignment, where.source(assignment).stem
    if folder.parent.is_symlink() or folder.is_symlink() or not folder.is_dir():
        return HandIn(standing=UNREADABLE, why=_NO_FOLDER)
    file = notebook_of(in_folder(folder, deepest=0), stem)
    data, why = file.read() if file else (None, "")
    cells, why_none = found_cells(data)
    if not cells:
        why = f"The file {file.path} {why}." if why else why_none
        again = f" Save your notebook in Jupyter and hand in {stem}.ipynb."
        return HandIn(standing=UNREADABLE, why=why + again)
    found = f"The notebook was found under the name {file.path}; it should be {stem}.ipynb."
    notes = [] if file.path.name == f"{stem}.ipynb" else [found]
    names = {name for cell in cells for name in cell.names}
    shared = {one: len(names & _released(where, one).keys()) for one in where.assignments()}
    other = max(shared, key=shared.get)
    if shared[other] > shared[assignment]:
        why = f"This is the notebook of {other}, not of {assignment}: it was not graded."
        return HandIn([], notes, FOREIGN, f"{why} Hand in {stem}.ipynb of {assignment}.")
    given = _released(where, assignment).values()
    is_blank = all(cell.source in given for cell in cells if cell.source.strip())
    return HandIn(cells, notes, BLANK if is_blank else "")


def _released(where: Places, assignment: str) -> dict[str, str]:
    """The text of each cell as it was given out, by grade_id or id."""
    path = where.released(assignment)
    path = path if path.exists() else where.source(assignment)
    return _texts(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _texts(path: Path, _changed: int) -> dict[str, str]:
    cells = json.loads(path.read_text())["cells"]
    names = (cell["metadata"].get("nbgrader", {}).get("grade_id", cell["id"]) for cell in cells)
    return {name: "".join(cell["source"]) for name, cell in zip(names, cells, strict=True)}


def _visible(folder: Path) -> list[Path]:
    """What lies in a folder, if it is one."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if not path.name.startswith("."))
