"""The board of a task: what answers that passed came to, as check.board counted it. Pure.

The class sees it on every feedback page of the assignment, as it stood when the page was written:
only answers whose authors chose a pseudonym, under that. Nothing there tells whose a row is: the
order is that of the numbers, and of the pseudonyms where they are equal; several may choose the
same. The class page is the instructor's, and has all, with real names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.grade.journal import Judgement
from autograder.grade.verdicts import PASSED

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One answer's row: its place, its author and pseudonym, amounts by column."""

    place: int
    student: str
    name: str
    row: Row


@dataclass(frozen=True)
class Board:
    """A task's `title`; `columns` by name, and those of numbers; `entries` in their order."""

    title: str
    columns: list[str]
    numbers: list[str]
    entries: list[Entry]


def boards(
    judgements: Iterable[Judgement], titles: Mapping[str, str], named: bool = False
) -> list[Board]:
    """The boards of one assignment, in the order of its tests; those that nobody is on left out.

    named: with the answers alone that have a pseudonym.
    """
    given: dict[str, list[tuple[str, str, Row]]] = {}
    for judgement in judgements:
        for verdict in judgement.verdicts:
            on = verdict.board if verdict.verdict == PASSED else {}
            if on and (on["name"] or not named):
                row = judgement.student, on["name"], dict(on["row"])
                given.setdefault(verdict.question, []).append(row)
    return [_board(titles[task], given[task]) for task in titles if task in given]


def _board(title: str, given: list[tuple[str, str, Row]]) -> Board:
    columns = list(dict.fromkeys(name for *_, row in given for name in row))
    numbers = [name for name in columns if all(_is_number(row.get(name)) for *_, row in given)]

    def amounts(row: Row) -> list[float]:
        return [row[name] for name in numbers]

    ranked = sorted(given, key=lambda one: (amounts(one[2]), one[1]))
    order = [amounts(row) for *_, row in ranked]
    entries = [
        Entry(1 + order.index(amounts(row)), student, name, row) for student, name, row in ranked
    ]
    return Board(title, columns, numbers, entries)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
