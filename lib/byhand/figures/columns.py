"""Rows of bars in several columns side by side: what each choice costs, in several ways at once."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from byhand.figures import pen, style

INCHES, KEY_INCHES = 0.27, 0.3  # of a row; of the key, below


class Bar(NamedTuple):
    """Bars end to end, (length, colour) each, the text behind them, and where to put a tick."""

    bars: Sequence[tuple[float, Any]]
    text: str
    tick: float | None = None


def columns(
    rows: Mapping[str, Sequence[Bar]],
    headings: Sequence[str],
    title: str,
    key: Mapping[str, Any],
    tick: str = "",
) -> style.CourseFigure:
    """A row for each name, a column for each heading, each to a scale of its own from 0.

    A row without bars is a heading of those below it. tick: what ticks mean, for the key.
    """
    inches = 1.0 + INCHES * len(rows) + KEY_INCHES * bool(key)
    with style.plot(inches, title, 1, len(headings), sharey=True) as (figure, grid):
        foot = KEY_INCHES * bool(key) / inches
        figure.set_layout_engine("constrained", rect=(0, foot, 1, 1 - foot))
        pen.rows(grid[0], rows)
        for name, label in zip(rows, grid[0].get_yticklabels(), strict=True):
            label.set_weight("normal" if rows[name] else "bold")
        for number, (axes, heading) in enumerate(zip(grid, headings, strict=True)):
            lengths = [sum(bar[0] for bar in row[number].bars) for row in rows.values() if row]
            axes.set(xlim=(0, 1.45 * max(lengths)), xticks=[])
            axes.spines["bottom"].set_visible(False)
            axes.tick_params(left=False)
            axes.set_title(heading, loc="left", fontsize=style.TEXT_POINTS)
            for y, row in enumerate(rows.values()):
                if row:
                    end = pen.stack(axes, y, 0.66, [("", x, c) for x, c in row[number].bars])
                    pen.beside(axes, (end, y), row[number].text, 3)
                    if (at := row[number].tick) is not None:
                        axes.plot([at, at], [y - 0.45, y + 0.45], color=style.INK, linewidth=2)
        entries: list[Any] = [Patch(fc=c, ec=style.FAINT, label=name) for name, c in key.items()]
        if tick:
            look: dict[str, Any] = {"marker": "|", "markersize": 11, "markeredgewidth": 2}
            entries.append(Line2D([], [], color=style.INK, ls="none", label=tick, **look))
        corner = 0.1 / style.WIDTH_INCHES, 0
        across = max(1, len(entries))
        figure.legend(handles=entries, ncols=across, loc="lower left", bbox_to_anchor=corner)
    return figure
