"""The arena: one small exercise that every hostile, broken or strange hand-in is judged on.

Three tasks: `double` (no communication), `total` (one all-reduce) and `shift` (a ring of sends).
A case changes one or two of them and leaves the others right, so that a mark gained and a mark
lost through somebody's fault both show.
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (2, 1)]

from nbformat import NotebookNode, reads, write  # noqa: E402
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook  # noqa: E402

from autograder.release import generate as release
from autograder.places import Places  # noqa: E402
from autograder.release.rules import KERNELSPEC  # noqa: E402

ASSIGNMENT, STEM = "01_arena", "arena"
SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
PASSED, LOST = "passed", "lost"
POINTS = {"test-double": 2, "test-total": 3, "test-shift": 4}
CANARY = "canary-6f1d"  # stands in every hidden test, and nowhere a student may look
HEADER = "# Arena\n\nTime: about 5 minutes · Points: 9 · Needs: lecture 1 · Difficulty: 1 of 3"
IMPORTS = (
    "import os\nimport torch\nimport torch.distributed as dist\n"
    "from byhand import PerRank, check, launch"
)
DOUBLE = '''def double(number):
    """Twice the number."""
    ### BEGIN SOLUTION
    return 2 * number
    ### END SOLUTION'''
TOTAL = '''def total(tensor):
    """The sum of all ranks' tensors, on every rank, with one all-reduce."""
    ### BEGIN SOLUTION
    tensor = tensor.clone()
    dist.all_reduce(tensor)
    return tensor
    ### END SOLUTION'''
SHIFT = '''def shift(tensor):
    """The tensor of the rank before this one, with one send and one receive."""
    ### BEGIN SOLUTION
    rank, ranks = dist.get_rank(), dist.get_world_size()
    got = torch.empty_like(tensor)
    sending = dist.isend(tensor, (rank + 1) % ranks)
    dist.recv(got, (rank - 1) % ranks)
    sending.wait()
    return got
    ### END SOLUTION'''
TEST_DOUBLE = f"""def drive_double(rank, world_size, number):
    return double(number)


with check.part("two ranks, the number 21"):
    check.results(launch(drive_double, 2, args=(21,)), [42, 42], what="double")
### BEGIN HIDDEN TESTS
with check.part("a hidden number"):  # {CANARY}
    _hidden = launch(drive_double, 1, args=(-987654,))
    check.results(_hidden, [-1975308], what="{CANARY}")
### END HIDDEN TESTS"""
TEST_TOTAL = f"""def drive_total(rank, world_size, tensor):
    return total(tensor)


def check_total(ranks, items):
    tensors = [check.whole_numbers(items) for rank in range(ranks)]
    run = launch(drive_total, ranks, args=(PerRank(tensors),))
    check.results(run, [sum(tensors)] * ranks, what="total")
    check.communication(run, all_reduce=1)


with check.part("two ranks"):
    check_total(2, 3)
### BEGIN HIDDEN TESTS
with check.part("three ranks"):  # {CANARY}
    check_total(3, 5)
### END HIDDEN TESTS"""
TEST_SHIFT = f"""def drive_shift(rank, world_size, tensor):
    return shift(tensor)


def check_shift(ranks, items):
    tensors = [check.random(items) for rank in range(ranks)]
    run = launch(drive_shift, ranks, args=(PerRank(tensors),))
    check.results(run, [tensors[rank - 1] for rank in range(ranks)], what="shift")
    check.communication(run, send=1, recv=1)
    check.sent_bytes(run, at_most=8 * items)


with check.part("two ranks"):
    check_shift(2, 4)
### BEGIN HIDDEN TESTS
with check.part("three ranks"):  # {CANARY}
    check_shift(3, 1000)
### END HIDDEN TESTS"""


@dataclass(frozen=True)
class Case:
    """One hand-in: `write(folder, blank, about)` makes it; `says` must stand in its feedback.

    `noted` is all that the instructor is told to look at (None: whatever it is).

    `expected` are verdicts by test; "lost" is any verdict but passed. `about` tells an attack
    where the real things lie (see `surroundings`). `marks` are the points of each test.
    """

    name: str
    write: Callable[[Path, dict, dict[str, str]], None]
    expected: dict[str, str]
    says: tuple[str, ...] = ()
    noted: tuple[str, ...] | None = None
    assignment: str = ASSIGNMENT
    marks: dict[str, int] = field(default_factory=POINTS.copy)

    @property
    def points(self) -> int:
        """What it is worth."""
        return sum(self.marks[test] for test, verdict in self.expected.items() if verdict == PASSED)


def verdicts(**tasks: str) -> dict[str, str]:
    """Every test passed, but these."""
    return dict.fromkeys(POINTS, PASSED) | {f"test-{name}": v for name, v in tasks.items()}


def nothing() -> dict[str, str]:
    """Every test lost."""
    return dict.fromkeys(POINTS, LOST)


def written(
    name: str,
    verdict: str | dict[str, str],
    says: tuple[str, ...] = (),
    noted: tuple[str, ...] | None = None,
    **cells: str,
):
    """A case whose solution cells are these; others are right. One verdict is for all of them."""
    expected = verdict if isinstance(verdict, dict) else verdicts(**dict.fromkeys(cells, verdict))

    def write_it(folder: Path, blank: dict, about: dict[str, str]) -> None:
        texts = {task: _placed(text, about) for task, text in cells.items()}
        save(folder, answered(blank, **texts))

    return Case(name, write_it, expected, says, noted)


def changed(name: str, expected: dict[str, str], change: Callable, says: tuple[str, ...] = (),
            file: str = f"{STEM}.ipynb", noted: tuple[str, ...] | None = None, **cells: str):
    """A case made by `change(notebook, cells)` from a notebook answered so (or right)."""

    def write_it(folder: Path, blank: dict, about: dict[str, str]) -> None:
        notebook = answered(blank, **cells)
        change(notebook, {cell["id"]: cell for cell in notebook["cells"]})
        save(folder, notebook, file)

    return Case(name, write_it, expected, says, noted)


def _placed(text: str, about: dict[str, str]) -> str:
    for name, value in about.items():
        text = text.replace(f"<<{name}>>", value)
    return text


def answered(blank: dict, **answers: str) -> dict:
    """The notebook with right answers, and these instead of some; an answer of "" stays blank."""
    notebook = copy.deepcopy(blank)
    texts = {"double": DOUBLE, "total": TOTAL, "shift": SHIFT, **answers}
    for cell in notebook["cells"]:
        cell["source"] = texts.get(cell["id"]) or "".join(cell["source"])
    return notebook


def save(folder: Path, notebook: dict, file: str = f"{STEM}.ipynb") -> None:
    """Write a hand-in."""
    (folder / file).write_text(json.dumps(notebook))


def source() -> NotebookNode:
    """The source notebook."""
    cells = [
        new_markdown_cell(HEADER, id="arena"),
        _cell("imports", IMPORTS, locked=True),
        _cell("double", DOUBLE, solution=True),
        _cell("test-double", TEST_DOUBLE, locked=True, points=2),
        _cell("total", TOTAL, solution=True),
        _cell("test-total", TEST_TOTAL, locked=True, points=3),
        _cell("shift", SHIFT, solution=True),
        _cell("test-shift", TEST_SHIFT, locked=True, points=4),
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": dict(KERNELSPEC)})


def _cell(name: str, text: str, **settings) -> NotebookNode:
    data = {"grade": "points" in settings, "grade_id": name, "locked": False, "schema_version": 3}
    cell = new_code_cell(text, id=name)
    cell.metadata["nbgrader"] = {**data, "solution": False, "task": False, **settings}
    return cell


def make_course(folder: Path, exercises: list[str] = ()) -> Places:
    """The course on disk, released, with these real exercises too, and an empty class."""
    where = Places(folder / "course", folder / "class")
    path = where.solutions / ASSIGNMENT / f"{STEM}.ipynb"
    path.parent.mkdir(parents=True)
    write(source(), path)
    for name in exercises:
        shutil.copytree(SOLUTIONS / name, where.solutions / name)
    release.release(where, [ASSIGNMENT, *exercises])
    return where


def surroundings(where: Places, secrets: Path, port: int) -> dict[str, str]:
    """Where the things lie that an attack may want, by the names that its text uses."""
    return {
        "solution": str(where.source(ASSIGNMENT)),
        "class": str(where.class_dir),
        "course": str(where.course),
        "gradebook": str(where.gradebook),
        "journal": str(where.journal),
        "secrets": str(secrets),
        "port": str(port),
        "python": sys.prefix,
    }


def write_class(where: Places, cases: list[Case], about: dict[str, str]) -> None:
    """Write what the class handed in."""
    for case in cases:
        blank = json.loads(where.released(case.assignment).read_text())
        folder = where.submitted / case.name / case.assignment
        folder.mkdir(parents=True)
        case.write(folder, blank, about)


def released(where: Places) -> NotebookNode:
    """The released notebook."""
    return reads(where.released(ASSIGNMENT).read_text(), as_version=4)
