"""The pairs of submissions that are most alike, side by side, on one page without scripts."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat

from autograder.grade.journal import Judgement
from autograder.grade.marks import graded
from autograder.pages import render, title_of, write_page
from autograder.places import Places
from autograder.report.similarity import MAX_CHARACTERS, RING, K, Program, pairs, program

NUM_LISTED, NUM_SHOWN = 100, 25


def write_similarity(where: Places, assignments: list[str], path: Path, ring: int = RING) -> Path:
    """Write the page. `ring`: passages that more students have count as the task's own.

    Raises:
        CourseError: nothing was graded yet.
    """
    by_assignment = groupby(graded(where, assignments), key=lambda j: j.assignment)
    sheets = [_sheet(where, name, list(some), ring) for name, some in by_assignment]
    page = render(
        "similarity.html",
        sheets=sheets,
        ring=ring,
        run=K,
        limit=MAX_CHARACTERS,
        num_listed=NUM_LISTED,
        num_shown=NUM_SHOWN,
        marked_cells=marked_cells,
    )
    return write_page(path, page)


def _sheet(where: Places, name: str, judgements: list[Judgement], ring: int) -> dict[str, Any]:
    source = nbformat.read(where.source(name), as_version=4)
    released = nbformat.read(where.released(name), as_version=4)
    given = [cell.source for cell in released.cells if cell.cell_type == "code"]
    ours = {cell.id for cell in source.cells}
    programs = [program(j.student, _answers_first(j, ours)) for j in judgements]
    return {
        "assignment": name,
        "title": title_of(source),
        "num_submissions": len(programs),
        "cut": [one.student for one in programs if one.is_cut],
        "pairs": pairs(programs, given, ring),
    }


def _answers_first(judgement: Judgement, ours: set[str]) -> list[tuple[str, str]]:
    """Code cells by name: own ones come last, and cannot push an answer out of the comparison."""
    code = [(name, text) for name, kind, text in judgement.cells if kind == "code"]
    return sorted(code, key=lambda cell: cell[0] not in ours)


def marked_cells(one: Program, marked: set[int]) -> list[tuple[str, list[tuple[bool, str]]]]:
    """The cells of a submission that have marked lines: each line, and whether it is marked."""
    shown, first = [], 0
    for name, text in one.cells:
        lines = [(number in marked, line) for number, line in enumerate(text.split("\n"), first)]
        first += len(lines)
        if any(is_marked for is_marked, _ in lines):
            shown.append((name, lines))
    return shown
