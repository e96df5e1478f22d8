"""Rows of bars in several columns side by side: what each choice costs, in several ways at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from byhand.figures import pen, style

INCHES = 0.27  # of a row
BEATEN = 0.3  # the strength of the colours of rows that are not in front


class Bar(NamedTuple):
    """Bars end to end, (length, colour) each, and the text behind them."""

    bars: Sequence[tuple[float, Any]]
    text: str


def columns(
    rows: Mapping[str, Sequence[Bar]],
    headings: Sequence[str],
    title: str,
    key: Mapping[str, Any],
    front: Collection[str] = (),
) -> Figure:
    """A row for each name, a column for each heading, each to a scale of its own from 0.

    front: the rows that are drawn strong, with a bold name; all others are pale.
    """
    height = 1.0 + INCHES * len(rows)
    title += "\n"  # room for the key
    with style.plot(height + 0.2, title, 1, len(headings), sharey=True) as (figure, grid):
        pen.rows(grid[0], rows)
        for name, label in zip(rows, grid[0].get_yticklabels(), strict=True):
            label.set_weight("bold" if name in front else "normal")
        for number, (axes, heading) in enumerate(zip(grid, headings, strict=True)):
            lengths = [sum(bar[0] for bar in row[number].bars) for row in rows.values()]
            axes.set(xlim=(0, 1.45 * max(lengths)), xticks=[])
            axes.spines["bottom"].set_visible(False)
            axes.tick_params(left=False)
            axes.set_title(heading, loc="left", fontsize=style.TEXT_POINTS)
            for y, (name, row) in enumerate(rows.items()):
                strength = 1.0 if name in front else BEATEN
                bars = [("", x, style.tint(colour, strength)) for x, colour in row[number].bars]
                end = pen.stack(axes, y, 0.66, bars)
                weight = "bold" if name in front else "normal"
                pen.beside(axes, (end, y), row[number].text, 3, weight=weight)
        pen.key(grid[0], key, 1.0 + 1.1 / len(rows))
        grid[0].get_legend().set_in_layout(False)  # else the first column is as wide as the key
    return figure
