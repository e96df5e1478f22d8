"""The door: whatever lies in a student's place becomes cells, and nothing behind it sees more."""

import functools
import os
from collections.abc import Collection
from pathlib import Path

from autograder.collect.inbox import in_folder
from autograder.collect.names import student_name
from autograder.collect.uploads import Cell, found_cells, notebook_of, printable
from autograder.places import Places

FOREIGN, UNREADABLE = "another assignment's", "unreadable"
_NO_FOLDER = "A link or a file lies where the folder of this submission should be: it is not read."


def hand_ins(where: Places, assignments: Collection[str]) -> list[tuple[str, str]]:
    """(student, assignment) of all that lies in submitted/, by assignment, but for strays."""
    return [
        (folder.name, assignment)
        for assignment in sorted(assignments)
        for folder in sorted(where.submitted.glob("[!.]*"))
        if student_name(folder.name) == folder.name
        and not folder.is_symlink()
        and os.path.lexists(folder / assignment)
    ]


def strays(where: Places) -> list[str]:
    """A sentence for each thing in submitted/ that nobody would grade."""
    said, known = [], {*where.assignments()}
    for folder in sorted(where.submitted.glob("[!.]*")):
        name = printable(folder.name)
        if folder.is_symlink():
            said.append(f"submitted/{name} is a link and is not followed: put the folder there")
            continue
        inside = sorted(folder.glob("[!.]*"))
        if (better := student_name(folder.name)) != folder.name:
            said.append(f"submitted/{name} is no name for a student: call it {better}")
        elif not inside:
            said.append(f"submitted/{name} is no folder with a submission in it")
        others = [printable(path.name) for path in inside if path.name not in known]
        said += [f"submitted/{name}/{other}: no assignment is called so" for other in others]
    return said


def opened(where: Places, student: str, assignment: str) -> tuple[list[Cell], str, str]:
    """The cells that a student handed in. Never raises for the student's files.

    Where nothing can be judged there are none, but FOREIGN or UNREADABLE, and why in a sentence
    for the student.
    """
    folder, stem = where.submitted / student / assignment, where.source(assignment).stem
    if folder.parent.is_symlink() or folder.is_symlink() or not folder.is_dir():
        return [], UNREADABLE, _NO_FOLDER
    file = notebook_of(in_folder(folder, deepest=0), stem)
    data, why = file.read() if file else (None, "")
    cells, why_none = found_cells(data)
    if not cells:
        why = f"The file {file.path}: {why}." if file and why else why_none
        return [], UNREADABLE, f"{why} Save your notebook in Jupyter and hand in {stem}.ipynb."
    names = {name for cell in cells for name in cell.names}
    sources = {one: where.source(one) for one in where.assignments()}
    given = {one: _names(path, path.stat().st_mtime_ns) for one, path in sources.items()}
    if not any(cell.settings for cell in cells):  # lectures have nothing of nbgrader's
        for path in sorted((where.course / "lectures").glob("*.ipynb")):
            given[f"the lecture {path.stem}"] = _names(path, path.stat().st_mtime_ns)
    other = max(given, key=lambda one: (len(names & given[one]), one == assignment))
    if other != assignment:
        why = f"This is the notebook of {other}, not of {assignment}: it is not graded."
        return [], FOREIGN, f"{why} Hand in {stem}.ipynb of {assignment}."
    return cells, "", ""


@functools.lru_cache(maxsize=64)
def _names(path: Path, _changed: int) -> set[str]:
    """What the cells of a notebook of the course are called."""
    return {name for cell in found_cells(path.read_bytes())[0] for name in cell.names}
