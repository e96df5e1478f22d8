"""Which submissions of a class share passages that the released notebook does not explain.

A program becomes tokens: comments, docstrings and layout are dropped; every literal becomes the
same as any other, and so does every name but Python's own and a library's (what follows a dot,
unless it is self's). Two programs share a passage where K tokens in a row are equal. Two things are
taken out first: every passage of the released notebook, and every passage that more than RING
students have, which is what the task itself asks for. What is left is a reason to read two
submissions side by side, never a verdict. The page shows them so, without scripts.
"""

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import nbformat

from autograder.grade.engine import students_cells
from autograder.grade.journal import Judgement
from autograder.grade.marks import graded
from autograder.pages import render, title_of, write_page
from autograder.places import Places

K = 21
RING = 10  # students who work together, at most
MIN_SHARE = 0.25
MIN_TOKENS = 40  # about four lines: less is alike by chance
MAX_CHARACTERS = 200_000  # of one student, some 5,000 lines: a few seconds of work at most
NUM_SHOWN = 25
_TOKEN = re.compile(
    r"""(?P<dropped>\#[^\n]*|[rbfu]{0,2}(?:\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)))
    |(?P<literal>[rbfu]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|\d[\w.]*)
    |(?P<librarys>(?<=\.)(?<!self\.)\w+)
    |(?P<name>\w+)
    |\S""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PYTHONS = {*keyword.kwlist, *dir(builtins)}


@dataclass(frozen=True)
class Program:
    """One student's code; the line of each token, and the run of K tokens that it begins."""

    student: str
    text: str
    lines: list[int]
    runs: list[int]


@dataclass(frozen=True)
class Pair:
    """Two students. Shares are of each one's own tokens; `marked` are lines of shared passages."""

    programs: list[Program]
    shares: list[float]
    marked: list[set[int]]
    num_tokens: int


def program(student: str, text: str) -> Program:
    """A student's code, ready to be compared: its first MAX_CHARACTERS."""
    text = text[:MAX_CHARACTERS]
    found = list(tokens(text))
    return Program(student, text, [line for line, _ in found], _runs(found))


def tokens(source: str) -> Iterator[tuple[int, str]]:
    """The program without what a copier changes first, by line. Takes text that is no Python."""
    line = end = 0
    for found in _TOKEN.finditer(source):
        line += source.count("\n", end, found.start())
        end, kind, text = found.start(), found.lastgroup, found[0]
        if kind == "name" and text in _PYTHONS:
            yield line, text
        elif kind != "dropped":
            yield line, kind if kind in ("name", "literal") else text


def pairs(programs: list[Program], released: Iterable[str]) -> list[Pair]:
    """Pairs that share at least MIN_SHARE of the smaller one's own code, the most alike first.

    `released` are the texts of the cells that students were given.
    """
    given = {run for text in released for run in _runs(list(tokens(text)))}
    owners = Counter(run for one in programs for run in {*one.runs})
    telling = {run for run, number in owners.items() if number <= RING} - given
    theirs = [
        (one, {*one.runs} & telling, {*range(len(one.lines))} - _covered(one, given))
        for one in programs
    ]
    made = [_pair(two) for two in combinations(theirs, 2) if two[0][1] & two[1][1]]
    chosen = [p for p in made if max(p.shares) >= MIN_SHARE and p.num_tokens >= MIN_TOKENS]
    return sorted(chosen, key=lambda p: (-max(p.shares), -p.num_tokens))


def _pair(two: Iterable[tuple[Program, set[int], set[int]]]) -> Pair:
    """Of two: the program, its runs that tell something, and its own tokens."""
    programs, runs, own = zip(*two, strict=True)
    shared = runs[0] & runs[1]
    covered = [_covered(one, shared) & mine for one, mine in zip(programs, own, strict=True)]
    shares = [len(at) / max(len(mine), 1) for at, mine in zip(covered, own, strict=True)]
    marked = [{one.lines[p] for p in at} for at, one in zip(covered, programs, strict=True)]
    return Pair(list(programs), shares, marked, min(map(len, covered)))


def _covered(one: Program, runs: set[int]) -> set[int]:
    """Positions of the tokens inside these runs."""
    starts = [at for at, run in enumerate(one.runs) if run in runs]
    return {at for start in starts for at in range(start, start + K)}


def _runs(found: list[tuple[int, str]]) -> list[int]:
    """A number for each run of K tokens, by where it begins: equal runs have equal ones."""
    texts = [text for _, text in found]
    return [hash(tuple(texts[at : at + K])) for at in range(len(texts) - K + 1)]


def write_similarity(where: Places, assignments: list[str], path: Path) -> Path:
    """Write the page.

    Raises:
        CourseError: nothing was graded yet.
    """
    by_assignment = groupby(graded(where, assignments), key=lambda j: j.assignment)
    sheets = [_sheet(where, name, list(some)) for name, some in by_assignment]
    page = render("similarity.html", sheets=sheets, ring=RING, run=K, num_shown=NUM_SHOWN)
    return write_page(path, page)


def _sheet(where: Places, name: str, judgements: list[Judgement]) -> dict[str, Any]:
    source = nbformat.read(where.source(name), as_version=4)
    released = nbformat.read(where.released(name), as_version=4)
    given = [cell.source for cell in released.cells if cell.cell_type == "code"]
    given.append(_joined(students_cells(released)))  # a blank is explained across its cells
    ours = {cell.id for cell in source.cells}
    return {
        "assignment": name,
        "title": title_of(source),
        "num_submissions": len(judgements),
        "pairs": pairs([program(j.student, _code(j, ours)) for j in judgements], given),
    }


def _code(judgement: Judgement, ours: set[str]) -> str:
    """Code cells: own ones come last, and cannot push an answer out of the comparison."""
    return _joined(sorted(judgement.cells, key=lambda cell: cell[0] not in ours))


def _joined(cells: Iterable[tuple[str, str, str]]) -> str:
    return "\n\n".join(text for _, kind, text in cells if kind == "code")
