"""What a cell is to nbgrader, and which names it defines. Pure: a cell or text in, plain data out.

`is_grade`, `is_solution` and `is_locked` read nbgrader's metadata as nbgrader.utils
does, to which a test holds them. Importing nbgrader and nbformat takes three seconds, and every
judge's kernel begins by importing this.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode


def is_grade(cell: NotebookNode) -> bool:
    """Whether the cell has points: a test, or an answer that a person marks."""
    return _flag(cell, "grade")


def is_solution(cell: NotebookNode) -> bool:
    """Whether students write the cell."""
    return _flag(cell, "solution")


def is_locked(cell: NotebookNode) -> bool:
    """Whether a student's change to the cell is undone."""
    return not is_solution(cell) and (is_grade(cell) or _flag(cell, "locked"))


def _flag(cell: NotebookNode, name: str) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get(name, False))


def defined_names(source: str) -> list[str]:
    """Functions, classes and plain variables that a cell defines at its top level."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (name for target in targets for name in ast.walk(target)):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    names.append(name.id)
    return names
