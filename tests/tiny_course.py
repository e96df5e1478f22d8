"""A course of one small exercise, and classes for it: what the autograder's tests grade.

Two tasks that really run on ranks, and one answer in words that a person marks.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

from nbformat import NotebookNode, reads, write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.collect.uploads import found_cells
from autograder.grade.intake import Intake, rebuild
from autograder.places import Places
from autograder.release import generate as release
from autograder.release.rules import KERNELSPEC

ASSIGNMENT, STEM = "01_tiny", "tiny"
HEADER = "# Tiny\n\nTime: about 5 minutes · Points: 6 · Needs: lecture 1 · Difficulty: 1 of 3"
IMPORTS = (
    "import torch\nimport torch.distributed as dist\nfrom byhand import PerRank, check, launch"
)
DOUBLE = '''def double(number):
    """Twice the number."""
    ### BEGIN SOLUTION
    return 2 * number
    ### END SOLUTION'''
TEST_DOUBLE = """def drive_double(rank, world_size, number):
    return double(number)


with check.part("two ranks, the number 21"):
    check.results(launch(drive_double, 2, args=(21,)), [42, 42], what="double")
### BEGIN HIDDEN TESTS
with check.part("a hidden number"):
    check.results(launch(drive_double, 1, args=(-987654,)), [-1975308], what="double")
### END HIDDEN TESTS"""
TOTAL = '''def total(tensor):
    """The sum of all ranks' tensors, on every rank, with one all-reduce."""
    ### BEGIN SOLUTION
    tensor = tensor.clone()
    dist.all_reduce(tensor)
    return tensor
    ### END SOLUTION'''
TEST_TOTAL = """def drive_total(rank, world_size, tensor):
    return total(tensor)


with check.part("two ranks"):
    _tensors = [check.whole_numbers(3) for rank in range(2)]
    _run = launch(drive_total, 2, args=(PerRank(_tensors),))
    check.results(_run, [sum(_tensors)] * 2, what="total")
    check.communication(_run, all_reduce=1)
### BEGIN HIDDEN TESTS
with check.part("three ranks"):
    _tensors = [check.whole_numbers(5) for rank in range(3)]
    _run = launch(drive_total, 3, args=(PerRank(_tensors),))
    check.results(_run, [sum(_tensors)] * 3, what="total")
### END HIDDEN TESTS"""
WORDS = "Because every rank then holds the same sum."


def source() -> NotebookNode:
    """The source notebook."""
    cells = [
        new_markdown_cell(HEADER, id="tiny"),
        _graded("imports", IMPORTS, locked=True),
        new_markdown_cell("## Task 1 · Double (2 points)", id="task-1"),
        _graded("double", DOUBLE, solution=True),
        _graded("test-double", TEST_DOUBLE, locked=True, points=2, limit_seconds=6),
        new_markdown_cell("## Task 2 · Total (3 points)", id="task-2"),
        _graded("total", TOTAL, solution=True),
        _graded("test-total", TEST_TOTAL, locked=True, points=3, limit_seconds=6),
        _graded("why", WORDS, new_markdown_cell, solution=True, points=1),
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": dict(KERNELSPEC)})


def make_course(folder: Path) -> Places:
    """The course on disk, released, with an empty class."""
    where = Places(folder / "course", folder / "class")
    path = where.solutions / ASSIGNMENT / f"{STEM}.ipynb"
    path.parent.mkdir(parents=True)
    write(source(), path)
    release.release(where, [ASSIGNMENT])
    return where


def released(where: Places) -> NotebookNode:
    """The released notebook."""
    return reads(where.released(ASSIGNMENT).read_text(), as_version=4)


def as_bytes(notebook: NotebookNode) -> bytes:
    """A notebook as a file's bytes."""
    return json.dumps(notebook).encode()


def answered(blank: NotebookNode, **answers: str) -> NotebookNode:
    """A copy of the notebook with some solution cells filled in."""
    blank = copy.deepcopy(blank)
    for cell in blank.cells:
        cell.source = answers.get(cell.id.replace("-", "_"), cell.source)
    return blank


def solved(blank: NotebookNode) -> NotebookNode:
    """The released notebook with right answers."""
    return answered(blank, double=DOUBLE, total=TOTAL, why=WORDS)


def hand_in(
    where: Places, student: str, notebook: NotebookNode | bytes, name: str = f"{STEM}.ipynb"
) -> Path:
    """Put a notebook, or any bytes, where nbgrader keeps what students send."""
    path = where.submitted / student / ASSIGNMENT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else as_bytes(notebook))
    return path


def _graded(name: str, text: str, make=new_code_cell, **settings) -> NotebookNode:
    seconds = settings.pop("limit_seconds", None)
    data = {"grade": "points" in settings, "grade_id": name, "locked": False, "schema_version": 3}
    cell = make(text, id=name)
    cell.metadata["nbgrader"] = {**data, "solution": False, "task": False, **settings}
    if seconds:
        cell.metadata["limit_seconds"] = seconds
    return cell


def restore(submitted: bytes, released: NotebookNode) -> Intake:
    """The released notebook with the work in a file's bytes, whatever they are."""
    return rebuild(found_cells(submitted)[0], released)
