"""One training step of every rank: forward, backward, standing still, and the buckets in flight."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style
from byhand.words import counted

ROW_INCHES, LEFT, TOP, RIGHT, BOTTOM = 0.62, 0.68, 0.78, 0.2, 0.5  # inches
BAR, LANE, LANE_TOP = 0.46, 0.26, 0.27  # shares of a row: the rank's bar, and the lane below it
COLOURS = {
    "forward": style.COMPUTE,
    "backward": "#f2d49b",
    "standing still": style.PAPER,
    "bucket in flight": style.COMMUNICATION,
    "waiting for another rank": style.PAPER,
}


class Flight(NamedTuple):
    """One bucket's call on one rank; `met` is when the last rank had called too."""

    bucket: int
    start: float
    met: float
    end: float


class Step(NamedTuple):
    """One rank's step, in seconds: it computes until `backward_end` and waits until `end`."""

    start: float
    forward_end: float
    backward_end: float
    end: float
    flights: tuple[Flight, ...]


def overlap(
    steps: Sequence[Step], title: str | None = None, axis_seconds: float | None = None
) -> Figure:
    """Two lanes per rank: what the rank does, and below it which buckets are in flight.

    The title, unless given, says which share of the step the ranks stand still. axis_seconds: how
    far the axis reaches, so that figures can be compared; None: to the step's end.
    """
    begin, end = min(step.start for step in steps), max(step.end for step in steps)
    height = TOP + ROW_INCHES * len(steps) + BOTTOM
    title = finding(steps) if title is None else title
    with style.plot(height, title, LEFT, TOP, RIGHT, BOTTOM) as (figure, axes):
        axes.set(xlim=(0, 1e3 * (axis_seconds or end - begin)), ylim=(len(steps) - 0.45, -0.35))
        axes.set_xlabel("milliseconds")
        parts.rank_rows(axes, len(steps))
        for rank, step in enumerate(steps):
            edges = (step.start, step.forward_end, step.backward_end, step.end)
            for kind, left, right in zip(COLOURS, edges, edges[1:], strict=False):
                _bar(axes, (left - begin, right - begin), rank - BAR / 2, BAR, kind)
            for draw in (_draw_wait, _draw_flight):  # what travels lies over what still waits
                for flight in step.flights:
                    draw(axes, flight, begin, rank + LANE_TOP)
        heights = (0.16, 0.16, 0.16, 0.09)
        entries = zip(COLOURS, COLOURS.values(), heights, strict=False)
        parts.key(figure, LEFT, 0.48, entries)
    return figure


def finding(steps: Sequence[Step]) -> str:
    """The sentence that the figure shows."""
    calls = counted(max(len(step.flights) for step in steps), "call")
    return f"{calls}: the ranks stand still {standing_still(steps):.0%} of the step"


def standing_still(steps: Sequence[Step]) -> float:
    """The share of the step after backward, over all ranks."""
    waited = sum(step.end - step.backward_end for step in steps)
    return waited / sum(step.end - step.start for step in steps)


def _bar(axes: Axes, edges: tuple[float, float], top: float, height: float, kind: str) -> None:
    left, right = 1e3 * edges[0], 1e3 * edges[1]
    edge = style.FAINT if COLOURS[kind] == style.PAPER else style.PAPER  # of two buckets in a row
    parts.box(axes, (left, top), (right - left, height), COLOURS[kind], edge)


def _draw_wait(axes: Axes, flight: Flight, begin: float, top: float) -> None:
    edges = (flight.start - begin, min(flight.met, flight.end) - begin)
    _bar(axes, edges, top, LANE, "waiting for another rank")


def _draw_flight(axes: Axes, flight: Flight, begin: float, top: float) -> None:
    met, end = min(flight.met, flight.end) - begin, flight.end - begin
    _bar(axes, (met, end), top, LANE, "bucket in flight")
    middle = (1e3 * (met + end) / 2, top + LANE / 2)
    colour = COLOURS["bucket in flight"]
    parts.name_inside(axes, middle, 1e3 * (end - met), str(flight.bucket), colour)
