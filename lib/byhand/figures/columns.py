"""Rows of bars in several columns side by side: what each choice costs, in several ways at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from byhand.figures import pen, style

INCHES, KEY_INCHES = 0.27, 0.3  # of a row; of the key, below
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
    inches = 1.0 + INCHES * len(rows) + KEY_INCHES * bool(key)
    with style.plot(inches, title, 1, len(headings), sharey=True) as (figure, grid):
        foot = KEY_INCHES * bool(key) / inches
        figure.set_layout_engine("constrained", rect=(0, foot, 1, 1 - foot))
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
        entries = [Patch(fc=c, ec=style.FAINT, label=name) for name, c in key.items()]
        corner = 0.1 / style.WIDTH_INCHES, 0
        across = max(1, len(entries))
        figure.legend(handles=entries, ncols=across, loc="lower left", bbox_to_anchor=corner)
    return figure
