"""Rows of cells: who holds what, what a link carried, what an algorithm takes."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.typing import ColorType

from byhand.figures import pen, style

TALL = 0.86  # of a row's height


class Cell(NamedTuple):
    """What fills one cell: its colours, as stripes side by side, and its text."""

    row: int
    column: int
    colours: Sequence[ColorType]
    text: str = ""
    weight: str = "normal"


def cells(
    axes: Axes,
    rows: Sequence[str],
    columns: int,
    filled: Iterable[Cell],
    heading: str = "",
    points: float = style.TEXT_POINTS,
) -> None:
    """Named rows of so many columns; a cell that nothing fills is empty, with an edge that is seen.

    Row r is at y = r, column c from x = c to c + 1. points: the size of the cells' texts, which
    stand on paper where a cell has several colours.
    """
    pen.rows(axes, rows)
    axes.set(xlim=(0, columns), xticks=[])
    axes.set_title(heading, fontsize=style.TEXT_POINTS)
    axes.spines["bottom"].set_visible(False)
    gap = min(0.03, columns / 200)
    for row in range(len(rows)):
        for column in range(columns):
            corner = column + gap, row - TALL / 2
            pen.box(axes, corner, (1 - 2 * gap, TALL), style.PAPER, style.FAINT)
    for row, column, colours, text, weight in filled:
        left = column + gap
        for colour in colours:
            wide = (1 - 2 * gap) / len(colours)
            pen.box(axes, (left, row - TALL / 2), (wide, TALL), colour, width=0)
            left += wide
        look: dict[str, Any] = {"color": style.readable_on(colours[0] if colours else style.PAPER)}
        if len(colours) > 1:
            paper = {"boxstyle": "round,pad=0.15", "fc": style.PAPER, "ec": "none"}
            look = {"color": style.INK, "bbox": paper}
        middle = column + 0.5, row
        pen.small(axes, middle, text, va="center", fontsize=points, weight=weight, **look)
