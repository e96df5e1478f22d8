"""The pairs of submissions that are most alike, side by side, on one page without scripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.grade.journal import Journal, Judgement
from autograder.pages import render, title_of, write_page
from autograder.places import CourseError, Places
from autograder.report.similarity import MAX_CHARACTERS, RING, Pair, Program, pairs, program

NUM_LISTED, NUM_SHOWN = 100, 25


@dataclass(frozen=True)
class CellView:
    """One cell of a submission: runs of lines, those of shared passages marked."""

    name: str
    runs: list[tuple[bool, str]]


@dataclass(frozen=True)
class PairView:
    """One pair, with the cells that have shared passages."""

    pair: Pair
    cells: tuple[list[CellView], list[CellView]]


@dataclass(frozen=True)
class Sheet:
    """One assignment; `cut` are the students of whose code only the beginning was compared."""

    assignment: str
    title: str
    num_submissions: int
    num_pairs: int
    cut: list[str]
    pairs: list[Pair]
    views: list[PairView]


def write_similarity(where: Places, assignments: list[str], path: Path, ring: int = RING) -> Path:
    """Write the page. `ring`: passages that more students have count as the task's own.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = [j for j in Journal(where.journal).latest() if j.assignment in assignments]
    if not judgements:
        raise CourseError(f"nothing was graded yet in {where.class_dir}: run autograder grade")
    names = sorted({j.assignment for j in judgements})
    sheets = [_sheet(where, name, [j for j in judgements if j.assignment == name], ring)
              for name in names]  # fmt: skip
    return write_page(path, render("similarity.html", sheets=sheets, ring=ring,
                                   limit=MAX_CHARACTERS))  # fmt: skip


def _sheet(where: Places, name: str, judgements: list[Judgement], ring: int) -> Sheet:
    source = nbformat.read(where.source(name), as_version=4)
    released = nbformat.read(where.released(name), as_version=4)
    given = [cell.source for cell in released.cells if cell.cell_type == "code"]
    ours = {cell.id for cell in source.cells}
    programs = [program(j.student, _answers_first(j, ours)) for j in judgements]
    found = pairs(programs, given, ring)
    cut = [one.student for one in programs if one.is_cut]
    return Sheet(name, title_of(source), len(programs), len(found), cut, found[:NUM_LISTED],
                 [PairView(pair, (_cells(pair.left, pair.marked[0]),
                                  _cells(pair.right, pair.marked[1])))
                  for pair in found[:NUM_SHOWN]])  # fmt: skip


def _answers_first(judgement: Judgement, ours: set[str]) -> list[tuple[str, str]]:
    """Code cells by name: own ones come last, and cannot push an answer out of the comparison."""
    code = [(name, text) for name, kind, text in judgement.cells if kind == "code"]
    return sorted(code, key=lambda cell: cell[0] not in ours)


def _cells(one: Program, marked: frozenset[int]) -> list[CellView]:
    views, first = [], 0
    for name, text in one.cells:
        lines = text.split("\n")
        inside = [first + number in marked for number in range(len(lines))]
        if any(inside):
            views.append(CellView(name, _runs(lines, inside)))
        first += len(lines)
    return views


def _runs(lines: list[str], inside: list[bool]) -> list[tuple[bool, str]]:
    """Lines joined into runs that are marked or not; blank lines go with what is before them."""
    runs: list[tuple[bool, list[str]]] = []
    for line, is_marked in zip(lines, inside, strict=True):
        if runs and (runs[-1][0] == is_marked or not line.strip()):
            runs[-1][1].append(line)
        else:
            runs.append((is_marked, [line]))
    return [(is_marked, "\n".join(run) + "\n") for is_marked, run in runs]
