"""Rows over time: what each rank computes, unit by unit, and what travels meanwhile."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.typing import ColorType

from byhand.figures import pen, style

BEYOND = "#e9edf1"  # the ground of a panel where its own time is over


class Bar(NamedTuple):
    """What happens in a row from `start` to `end`; top, height: shares of the row, from its middle.

    White ones have an edge that is seen.
    """

    row: int
    start: float
    end: float
    colour: ColorType
    name: str = ""
    top: float = -0.4
    height: float = 0.8


class Panel(NamedTuple):
    """Named rows of one axis of time; a heading above them, and texts at their right, if any."""

    rows: Sequence[str]
    bars: list[Bar]
    heading: str = ""
    aside: Sequence[str] = ()


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which to show that many seconds, and how many of them a second has."""
    if seconds >= 2:
        return 1.0, "seconds"
    return (1e3, "milliseconds") if seconds >= 2e-3 else (1e6, "microseconds")


def over_time(
    panels: Sequence[Panel],
    title: str,
    key: Mapping[str, object],
    unit: str | None = None,
    end: float | None = None,
    row_inches: float = 0.34,
    named: float = 0.0,
    ground: bool = True,
) -> style.CourseFigure:
    """Panels below each other that share the axis of time, from 0 to `end` or the last bar's end.

    unit: what times are; seconds, suitably scaled, when None. named: the least share of a panel's
    names that must fit, else none is drawn; before that, primes go. Beyond a panel's last bar its
    ground is grey, not idle, unless `ground` is False.
    """
    end = end or max((bar.end for panel in panels for bar in panel.bars), default=0) or 1.0
    factor, unit = (1.0, unit) if unit else time_unit(end)
    tall = [row_inches * len(panel.rows) for panel in panels]
    headings = sum(bool(panel.heading) for panel in panels)
    height = sum(tall) + 0.85 + 0.26 * bool(key) + 0.33 * headings + 0.1 * (len(panels) - 1)
    look = {"height_ratios": tall, "sharex": True, "squeeze": False}
    with style.plot(height, title, len(panels), 1, **look) as (figure, grid):
        grid[-1, 0].set(xlim=(0, end * factor), xlabel=unit)
        pen.key(grid[0, 0], key, inches=0.3 * bool(panels[0].heading))
        for axes, panel in zip(grid.flat, panels, strict=True):
            pen.rows(axes, panel.rows)
            last = max((bar.end for bar in panel.bars), default=0)
            if ground and len(panels) > 1 and last < end:
                axes.axvspan(last * factor, end * factor, color=BEYOND, linewidth=0, zorder=0)
            axes.set_title(panel.heading, loc="left", **style.TITLE)
            axes.tick_params(bottom=panel is panels[-1])
            for row, text in enumerate(panel.aside):
                pen.at_right(axes, row, text, 6)
        style.settle(figure)
        for axes, panel in zip(grid.flat, panels, strict=True):
            names = _names(axes, panel.bars, factor, named)
            for bar, name in zip(panel.bars, names, strict=True):
                _draw(axes, bar, factor, name)
    return figure


def _names(axes: Axes, bars: Sequence[Bar], factor: float, named: float) -> list[str]:
    """What is written into each bar: its name, or that without its prime, or nothing."""
    for names in ([bar.name for bar in bars], [bar.name.rstrip("'") for bar in bars]):
        fit = [
            pen.fits(axes, (bar.end - bar.start) * factor, name)
            for bar, name in zip(bars, names, strict=True)
        ]
        if sum(fit) >= named * len(fit):
            return [name if fits else "" for name, fits in zip(names, fit, strict=True)]
    return [""] * len(bars)


def _draw(axes: Axes, bar: Bar, factor: float, name: str) -> None:
    left, wide = bar.start * factor, (bar.end - bar.start) * factor
    edge = style.FAINT if bar.colour == style.PAPER else style.PAPER
    pen.box(axes, (left, bar.row + bar.top), (wide, bar.height), bar.colour, edge, 0.6)
    if name:
        middle = (left + wide / 2, bar.row + bar.top + bar.height / 2)
        pen.small(axes, middle, name, color=style.readable_on(bar.colour))


LANES = {  # of a row: colour, top, height
    "forward": (style.COMPUTE, -0.4, 0.4),
    "backward": ("#f2d49b", -0.4, 0.4),
    "standing still": (style.PAPER, -0.4, 0.4),
    "all_gather": (style.OP_COLOURS["all_gather"], 0.05, 0.17),
    "reduce_scatter": (style.OP_COLOURS["reduce_scatter"], 0.24, 0.17),
    "all_reduce": (style.OP_COLOURS["all_reduce"], 0.24, 0.17),
    "message in flight": (style.COMMUNICATION, 0.05, 0.3),
    "to the file": (style.COMMUNICATION, 0.05, 0.3),
    "from the file": ("#44aa99", 0.05, 0.3),
}


class Span(NamedTuple):
    """A unit's forward or backward, or a call for it, in seconds; `kind` is one of LANES."""

    kind: str
    unit: int | str
    start: float
    end: float


def lanes(rows: Mapping[str, Sequence[Span]], title: str) -> style.CourseFigure:
    """A row a name: computing, and below it what was under way."""
    bars = []
    for row, spans in enumerate(rows.values()):
        for kind, unit, start, stop in sorted(spans, key=lambda span: list(LANES).index(span.kind)):
            colour, top, height = LANES[kind]
            bars.append(Bar(row, start, stop, colour, str(unit), top, height))
    kinds = {span.kind for spans in rows.values() for span in spans}
    seen = {kind.replace("_", "-"): LANES[kind][0] for kind in LANES if kind in kinds}
    return over_time([Panel(list(rows), bars)], title, seen, row_inches=0.72)
