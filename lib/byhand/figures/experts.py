"""Rows of each expert, stacked by the rank that holds it: who works most, and for whom all wait."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

ROW_INCHES, HEAD_INCHES, TOP, BOTTOM = 0.25, 0.32, 0.36, 0.5
LEFT, RIGHT = 0.68, 0.55
XLABEL = "rows in this step (dashed: the mean; hue: of an expert's rank in the first panel)"
TINTS = (1.0, 0.62, 0.82, 0.45)  # of a rank's experts, one after the other

Loads = Sequence[Mapping[int, float]]  # by rank: the rows of each expert there


def expert_loads(panels: Mapping[str, Loads], title: str | None = None) -> Figure:
    """A panel for each name, a row for each rank, a bar for each expert: as long as its rows.

    An expert has the hue of the rank that holds it in the first panel, wherever it is later. The
    line is the mean of the ranks. The title, unless given, compares the first panel and the last.
    """
    most = max(sum(rank.values()) for loads in panels.values() for rank in loads) or 1
    colours = _colours(next(iter(panels.values())))
    blocks = sum(HEAD_INCHES + ROW_INCHES * len(loads) for loads in panels.values())
    title = finding(panels) if title is None else title
    with style.plot(TOP + blocks + BOTTOM, title, LEFT, TOP, RIGHT, BOTTOM) as (figure, axes):
        axes.set(xlim=(0, most), ylim=(blocks, 0), xlabel=XLABEL)
        ticks, top = {}, 0.0
        for name, loads in panels.items():
            axes.text(0, top + 0.2, f"{name}: {worst(loads):.2f} × the mean", va="center")
            top += HEAD_INCHES
            for rank, experts in enumerate(loads):
                y = top + ROW_INCHES * (rank + 0.5)
                ticks[y] = f"rank {rank}"
                bars = [(f"{expert}", rows, colours[expert]) for expert, rows in experts.items()]
                parts.stack(axes, y, ROW_INCHES - 0.04, bars, "")
                look = {"ha": "right", "va": "center_baseline", "fontsize": style.SMALL_POINTS}
                parts.at_right(axes, y, f"{sum(experts.values()):.0f}", 34, **look)
            _draw_mean(axes, loads, top)
            top += ROW_INCHES * len(loads)
        axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= most])
        axes.set_yticks(list(ticks), list(ticks.values()))
    return figure


def worst(loads: Loads) -> float:
    """The most rows of a rank over the mean."""
    totals = [sum(rank.values()) for rank in loads]
    return max(totals) * len(totals) / sum(totals) if sum(totals) else 1.0


def finding(panels: Mapping[str, Loads]) -> str:
    """How much more than the mean the busiest rank has to do."""
    (first, before), *others = panels.items()
    if not others:
        return f"The busiest rank has {worst(before):.2f} times the mean to do"
    last, after = others[-1]
    return f"Busiest rank: {worst(before):.2f} × the mean {first}, {worst(after):.2f} × {last}"


def _colours(loads: Loads) -> dict[int, tuple]:
    return {
        expert: style.tint(style.rank_colour(rank), TINTS[number % len(TINTS)])
        for rank, experts in enumerate(loads)
        for number, expert in enumerate(experts)
    }


def _draw_mean(axes: Axes, loads: Loads, top: float) -> None:
    mean = sum(sum(rank.values()) for rank in loads) / len(loads)
    look = {"color": style.INK, "linewidth": 1.1, "linestyle": (0, (3, 2))}
    axes.plot([mean, mean], [top, top + ROW_INCHES * len(loads)], **look)
