"""HTML by jinja2, every value plain text and escaped; pages stand alone and hold no script."""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from nbformat import NotebookNode

from autograder.cells import is_grade, is_solution
from byhand.words import amount_text, counted, plain_text

TEMPLATES = Path(__file__).parent / "templates"
_POINTS = re.compile(r"\s*\(\d+ points?\b[^)]*\)")


def render(template: str, **values: Any) -> str:
    """A page from a template in templates/."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    environment.globals |= {"counted": counted, "amount_text": amount_text}
    style = Markup((TEMPLATES / "style.css").read_text())
    return environment.get_template(template).render(style=style, **values)


def _plain(value: Any) -> Any:
    """A value as a page shows it; markup is our own."""
    return plain_text(value, None) if type(value) is str else value


def write_page(path: Path, html: str | bytes) -> Path:
    """Write a page, or any other file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(html.encode("utf-8", "replace") if isinstance(html, str) else html)
    os.replace(temporary, path)
    return path


def title_of(notebook: NotebookNode) -> str:
    """The first heading of a notebook."""
    return next(filter(None, (_heading(cell) for cell in notebook.cells)), "Untitled")


def task_titles(source: NotebookNode) -> dict[str, str]:
    """The heading above each graded cell, without its points, by grade_id.

    Tests that share a heading have their name behind it.
    """
    titles, heading = {}, ""
    for cell in source.cells:
        heading = _POINTS.sub("", _heading(cell)) or heading
        if is_grade(cell):
            titles[cell.id] = heading or cell.id
    tests = {name: name.removeprefix("test-") for name in titles if name.startswith("test-")}
    shared = Counter(titles[name] for name in tests)
    alike = {n: f"{titles[n]}: {short}" for n, short in tests.items() if shared[titles[n]] > 1}
    return titles | alike


def task_cells(source: NotebookNode) -> dict[str, list[str]]:
    """The solution cells that each test cell grades, by the test's grade_id."""
    cells: dict[str, list[str]] = {}
    waiting: list[str] = []
    for cell in source.cells:
        if is_solution(cell) and not is_grade(cell):
            waiting.append(cell.id)
        elif is_grade(cell) and not is_solution(cell):
            cells[cell.id], waiting = waiting, []
    return cells


def _heading(cell: NotebookNode) -> str:
    if cell.cell_type != "markdown":
        return ""
    found = re.search(r"^#{1,3} +(.+)$", cell.source, re.MULTILINE)
    return found.group(1).strip() if found and "nbgrader" not in cell.metadata else ""
