"""What a rank computes, unit by unit, and what travels meanwhile: simulated or recorded."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

ROW_INCHES, TOP, RIGHT, BOTTOM = 0.86, 0.78, 0.2, 0.5
BAR, LANE, LANE_TOP = 0.4, 0.19, 0.05  # shares of a row: computing, and each of two lanes below
COLOURS = {
    "forward": style.COMPUTE,
    "backward": "#f2d49b",
    "all_gather": style.OP_COLOURS["all_gather"],
    "reduce_scatter": style.OP_COLOURS["reduce_scatter"],
}
LANES = {"all_gather": 0, "reduce_scatter": 1}


class Span(NamedTuple):
    """A unit's forward or backward, or a call for it, in seconds; `kind` is one of COLOURS."""

    kind: str
    unit: int
    start: float
    end: float


def lanes(rows: Mapping[str, list[Span]], title: str) -> Figure:
    """A row a name: computing, and in two lanes below it what was under way. Time from 0."""
    end = max(span.end for spans in rows.values() for span in spans)
    left = 0.25 + parts.CHARACTER_INCHES * max(map(len, rows))
    height = TOP + ROW_INCHES * len(rows) + BOTTOM
    with style.plot(height, title, left, TOP, RIGHT, BOTTOM) as (figure, axes):
        axes.set(xlim=(0, 1e3 * end), ylim=(len(rows) - 0.5, -0.5), xlabel="milliseconds")
        axes.set_yticks(range(len(rows)), list(rows))
        for row, spans in enumerate(rows.values()):
            for span in spans:
                _draw(axes, row, span)
        names = [kind.replace("_", "-") for kind in COLOURS]
        entries = zip(names, COLOURS.values(), (0.16, 0.16, 0.09, 0.09), strict=True)
        parts.key(figure, left, 0.48, entries)
    return figure


def _draw(axes: Axes, row: int, span: Span) -> None:
    left, right = 1e3 * span.start, 1e3 * span.end
    if span.kind in LANES:
        top, height = row + LANE_TOP + LANES[span.kind] * LANE, LANE - 0.02
    else:
        top, height = row - BAR, BAR
    parts.box(axes, (left, top), (right - left, height), COLOURS[span.kind], width=0.6)
    middle = ((left + right) / 2, top + height / 2)
    parts.name_inside(axes, middle, right - left, str(span.unit), COLOURS[span.kind])
