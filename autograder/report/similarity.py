"""Which submissions of a class share passages that the released notebook does not explain.

A program becomes tokens: comments, docstrings and layout are dropped; every literal becomes the
same as any other, and so does every name but Python's own and a library's (what follows a dot,
unless it is self's). Two programs share a passage where K tokens in a row are equal. Two things are
taken out first: every passage of the released notebook, and every passage that more than `ring`
students have, which is what the task itself asks for. What is left is a reason to read two
submissions side by side, never a verdict. The page shows them so, without scripts.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import nbformat
from pygments.lexers import PythonLexer
from pygments.token import Comment, Literal, Name, String, Whitespace

from autograder.grade.journal import Judgement
from autograder.grade.marks import graded
from autograder.pages import render, title_of, write_page
from autograder.places import Places

K = 21
RING = 10
MIN_SHARE = 0.25
MIN_TOKENS = 40  # about four lines: less is alike by chance
MAX_CHARACTERS = 200_000  # of one student, some 5,000 lines: a few seconds of work at most
NUM_LISTED, NUM_SHOWN = 100, 25
_DROPPED = (Comment, Whitespace, String.Doc, String.Affix)


@dataclass(frozen=True)
class Program:
    """One student's code cells: (name, text); the line of each token, and the run it begins."""

    student: str
    cells: list[tuple[str, str]]
    lines: list[int]
    runs: list[int]

    @property
    def is_cut(self) -> bool:
        """Whether there is more than was compared."""
        return len(_joined(self.cells)) > MAX_CHARACTERS


@dataclass(frozen=True)
class Pair:
    """Two students. Shares are of each one's own tokens; `marked` are lines of shared passages."""

    programs: list[Program]
    shares: list[float]
    marked: list[set[int]]
    num_tokens: int

    @property
    def students(self) -> list[str]:
        """The two."""
        return [one.student for one in self.programs]


def program(student: str, cells: Iterable[tuple[str, str]]) -> Program:
    """A student's code, ready to be compared: its first MAX_CHARACTERS."""
    cells = list(cells)
    found = list(tokens(_joined(cells)[:MAX_CHARACTERS]))
    return Program(student, cells, [line for line, _ in found], _runs(found))


def tokens(source: str) -> Iterator[tuple[int, str]]:
    """The program without what a copier changes first, by line. Takes text that is no Python."""
    line, before = 0, ("", "")
    for _, kind, text in PythonLexer().get_tokens_unprocessed(source):
        what = _what(kind)
        if what != "dropped" and text.strip():
            is_librarys = before[1] == "." and before[0] != "self"
            now = "literal" if what == "literal" else text
            if (now, before[1]) != ("literal", "literal"):  # a text is several of the lexer's
                yield line, "name" if what == "name" and not is_librarys else now
            before = before[1], now
        line += text.count("\n")


@functools.cache
def _what(kind: tuple[str, ...]) -> str:
    """How a kind of the lexer's tokens counts: dropped, as one literal or name, or as its text."""
    if any(kind in dropped for dropped in _DROPPED):
        return "dropped"
    if kind in Literal:
        return "literal"
    return "name" if kind in Name and kind not in Name.Builtin else "text"


def pairs(
    programs: list[Program],
    released: Iterable[str],
    ring: int = RING,
    min_share: float = MIN_SHARE,
) -> list[Pair]:
    """Pairs that share at least `min_share` of the smaller one's own code, the most alike first.

    `released` are the texts of the cells that students were given.
    """
    given = {run for text in released for run in _runs(list(tokens(text)))}
    owners: dict[int, set[int]] = defaultdict(set)
    for number, one in enumerate(programs):
        for run in set(one.runs) - given:
            owners[run].add(number)
    shared: dict[tuple[int, int], set[int]] = defaultdict(set)
    for run, who in owners.items():
        for pair in combinations(sorted(who), 2) if len(who) <= max(ring, 2) else ():
            shared[pair].add(run)
    own = [set(range(len(one.lines))) - _covered(one, given) for one in programs]
    made = [
        _pair((programs[a], programs[b]), (own[a], own[b]), runs) for (a, b), runs in shared.items()
    ]
    chosen = [p for p in made if max(p.shares) >= min_share and p.num_tokens >= MIN_TOKENS]
    return sorted(chosen, key=lambda p: (-max(p.shares), -p.num_tokens, p.students))


def _pair(programs: tuple[Program, ...], own: tuple[set[int], ...], runs: set[int]) -> Pair:
    covered = [_covered(one, runs) & mine for one, mine in zip(programs, own, strict=True)]
    shares = [len(at) / max(len(mine), 1) for at, mine in zip(covered, own, strict=True)]
    marked = [{one.lines[p] for p in at} for one, at in zip(programs, covered, strict=True)]
    return Pair(list(programs), shares, marked, min(map(len, covered)))


def _covered(one: Program, runs: set[int]) -> set[int]:
    """Positions of the tokens inside these runs."""
    starts = [at for at, run in enumerate(one.runs) if run in runs]
    return {at for start in starts for at in range(start, start + K)}


def _runs(found: list[tuple[int, str]]) -> list[int]:
    """A number for each run of K tokens, by where it begins: equal runs have equal ones."""
    texts = [text for _, text in found]
    return [hash(tuple(texts[at : at + K])) for at in range(len(texts) - K + 1)]


def _joined(cells: list[tuple[str, str]]) -> str:
    return "\n".join(text for _, text in cells)


def write_similarity(where: Places, assignments: list[str], path: Path) -> Path:
    """Write the page.

    Raises:
        CourseError: nothing was graded yet.
    """
    by_assignment = groupby(graded(where, assignments), key=lambda j: j.assignment)
    sheets = [_sheet(where, name, list(some)) for name, some in by_assignment]
    page = render(
        "similarity.html",
        sheets=sheets,
        ring=RING,
        run=K,
        limit=MAX_CHARACTERS,
        num_listed=NUM_LISTED,
        num_shown=NUM_SHOWN,
        marked_cells=marked_cells,
    )
    return write_page(path, page)


def _sheet(where: Places, name: str, judgements: list[Judgement]) -> dict[str, Any]:
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
        "pairs": pairs(programs, given),
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
