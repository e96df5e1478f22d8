"""The open board of a task: answers that passed, under pseudonyms that their authors chose. Pure.

`check.board` made each row in a test cell. Nothing on the board tells whose a row is: its order is
that of the numbers, and of the names where they are equal. A pseudonym that several chose is told
apart by a number.

To publish it: every feedback page of the assignment has it, as the class stood when the page was
written. The class page has real names above it, and is the instructor's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.grade.journal import Judgement
from autograder.grade.verdicts import PASSED

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Board:
    """A task's `title`; `columns` by name; `rows` of (place, pseudonym, amount by column).

    `lengths`: by column of numbers the largest, which a full bar stands for.
    """

    title: str
    columns: list[str]
    rows: list[tuple[int, str, Row]]
    lengths: dict[str, float]


def boards(judgements: Iterable[Judgement], titles: Mapping[str, str]) -> list[Board]:
    """The boards of one assignment, in the order of its tests; those that nobody is on left out."""
    given: dict[str, list[tuple[str, Row]]] = {}
    for verdict in (verdict for judgement in judgements for verdict in judgement.verdicts):
        if verdict.verdict == PASSED and verdict.board.get("name"):
            rows = given.setdefault(verdict.question, [])
            rows.append((verdict.board["name"], dict(verdict.board["row"])))
    return [_board(titles[task], given[task]) for task in titles if task in given]


def _board(title: str, given: list[tuple[str, Row]]) -> Board:
    columns = list(dict.fromkeys(name for _, row in given for name in row))
    numbers = [name for name in columns if all(_is_number(row.get(name)) for _, row in given)]

    def amounts(row: Row) -> list[float]:
        return [row[name] for name in numbers]

    ranked = sorted(given, key=lambda one: (amounts(one[1]), one[0]))
    order, seen, rows = [amounts(row) for _, row in ranked], Counter[str](), []
    for name, row in ranked:
        seen[name] += 1
        told = name if seen[name] == 1 else f"{name} ({seen[name]})"
        rows.append((1 + order.index(amounts(row)), told, row))
    most = {name: max(row[name] for _, row in given) for name in numbers}
    return Board(title, columns, rows, most)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
