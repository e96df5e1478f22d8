"""What a cell is to nbgrader is what nbgrader itself says, for every cell of the course."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader import utils

from autograder import cells

ROOT = Path(__file__).parents[2]
FLAGS = (
    {},
    {"grade": True},
    {"solution": True},
    {"grade": True, "solution": True},
    {"locked": True},
    {"task": True},
    {"locked": True, "solution": True},
)


@pytest.mark.parametrize("name", ["is_grade", "is_solution", "is_locked"])
def test_a_cell_is_to_us_what_it_is_to_nbgrader(name):
    found = [
        cell
        for path in sorted(ROOT.glob("solutions/*/*.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
    ]
    found += [nbformat.v4.new_code_cell(metadata={"nbgrader": flags}) for flags in FLAGS]
    found.append(nbformat.v4.new_code_cell())
    ours, theirs = getattr(cells, name), getattr(utils, name)
    assert [ours(cell) for cell in found] == [theirs(cell) for cell in found]
    assert len({ours(cell) for cell in found}) == 2


def test_the_judges_kernel_starts_without_nbgrader_and_nbformat():
    heavy = {"nbgrader", "nbformat", "papermill", "matplotlib"}
    program = f"import sys, autograder.grade.judge; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
