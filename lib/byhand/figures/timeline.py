"""What each rank did, when: computing, waiting for another rank, or moving bytes.

A rank that stands still for a call *waits* until the last rank of that call has called too; from
then until it may go on, the call *communicates*. All other time within its function is compute.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes

from byhand.figures import pen, style
from byhand.figures.lanes import Bar, Panel, over_time, time_unit

IN_FLIGHT = "call in flight meanwhile"
LEAST_WAIT = 0.02  # of a call's length: less is not drawn
COLOURS = {
    "compute": style.COMPUTE,
    "waiting": style.WAITING,
    "communication": style.COMMUNICATION,
    IN_FLIGHT: style.COMMUNICATION,
}


class Segment(NamedTuple):
    """A stretch of one rank's time; `label` names the call, and is empty for compute."""

    rank: int
    start: float
    end: float
    kind: str
    label: str = ""


def timeline(
    events: Iterable,
    spans: Sequence[tuple[float, float]],
    title: str | None = None,
    phases: Mapping[str, tuple[float, float]] | None = None,
) -> style.CourseFigure:
    """A row per rank, rank 0 on top, time from 0. The title, unless given, says who waits most.

    events: a run's ledger.events; spans: a run's spans, (start, end) of each rank's function.
    A thin band under a row is a call in flight while its rank went on computing, or that it never
    waited for. phases: by name, (start, end) of stretches that are named above the rows, in place
    of the calls.
    """
    events = list(events)
    segments = find_segments(events, spans)
    bars = [Bar(s.rank, s.start, s.end, COLOURS[s.kind], "", -0.31, 0.62) for s in segments]
    flying = [e for e in events if e.end > e.start and (e.overlapped or e.wait_start is None)]
    bars += [Bar(e.rank, e.start, e.end, COLOURS[IN_FLIGHT], "", 0.34, 0.12) for e in flying]
    kinds = {segment.kind for segment in segments} | ({IN_FLIGHT} if flying else set())
    key = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
    title = finding(segments, spans) if title is None else title
    end = max(end for _, end in spans)
    panel = Panel(pen.ranks(len(spans)), bars)
    figure = over_time([panel], title, key, end=end, row_inches=0.5)
    with style.styled():
        (axes,), factor = figure.axes, time_unit(end)[0]
        axes.set_ylim(top=-0.9)  # room for names
        _label_phases(axes, phases, factor) if phases else _label_calls(axes, segments, factor)
    return figure


def find_segments(events: Iterable, spans: Sequence[tuple[float, float]]) -> list[Segment]:
    """Each rank's span cut into compute, waiting and communication, in order."""
    calls = defaultdict(list)  # rank: (start, everyone there, end, label)
    for e in events:
        if e.wait_start is None or (e.overlapped and e.waited < LEAST_WAIT * (e.end - e.start)):
            continue  # nobody stood still for it
        end = e.wait_start + e.waited
        ready = end if e.ready is None else e.ready  # nobody came: it waited to its end
        calls[e.rank].append((e.wait_start, max(e.wait_start, ready), end, e.op))
    segments = []
    for rank, span in enumerate(spans):
        segments += _cut(rank, span, calls[rank])
    return segments


def finding(segments: Iterable[Segment], spans: Sequence[tuple[float, float]]) -> str:
    """The sentence that the timeline shows: which rank waits longest, as a share of its time."""
    waited = [0.0] * len(spans)
    for segment in segments:
        if segment.kind == "waiting":
            waited[segment.rank] += segment.end - segment.start
    shares = [w / (end - start or 1) for w, (start, end) in zip(waited, spans, strict=True)]
    share = max(shares, default=0.0)
    if share < 0.02:
        return "No rank waits for another"
    return f"Rank {shares.index(share)} waits {share:.0%} of its time for other ranks"


def _cut(rank: int, span: tuple[float, float], calls: list[tuple]) -> list[Segment]:
    begin, end = span
    edges = {begin, end} | {time for call in calls for time in call[:3] if begin < time < end}
    segments: list[Segment] = []
    for start, stop in pairwise(sorted(edges)):
        active = [call for call in calls if call[0] <= start and stop <= call[2]]
        moving = [call for call in active if call[1] <= start]
        kind = "communication" if moving else "waiting" if active else "compute"
        label = (moving or active)[0][3] if active else ""
        if segments and segments[-1][3:] == (kind, label):
            start = segments.pop().start
        segments.append(Segment(rank, start, stop, kind, label))
    return segments


def _label_calls(axes: Axes, segments: list[Segment], factor: float) -> None:
    """Name each call inside its bar where there is room; else above the first row, once."""
    seconds_per_inch = 1 / (pen.inches_per_unit(axes) * factor)
    taken_until, named_until = float("-inf"), float("-inf")
    for segment in segments:
        if not segment.label or segment.start == named_until:
            continue
        text = segment.label.replace("_", "-")
        needed = (len(text) + 1) * pen.CHARACTER_INCHES * seconds_per_inch
        middle = (segment.start + segment.end) / 2
        if segment.end - segment.start >= needed:
            pen.small(axes, (middle * factor, segment.rank), text, va="center")
            named_until = segment.end  # its communication follows at once and needs no second name
        elif segment.rank == 0 and segment.kind == "communication":
            if middle - needed / 2 >= taken_until:
                pen.small(axes, (middle * factor, -0.42), text, va="bottom")
                taken_until = middle + needed / 2


def _label_phases(axes: Axes, phases: Mapping[str, tuple[float, float]], factor: float) -> None:
    for name, (start, end) in phases.items():
        axes.plot([start * factor, end * factor], [-0.42] * 2, color=style.COMMUNICATION, lw=1.2)
        pen.small(axes, ((start + end) / 2 * factor, -0.46), name, va="bottom")
