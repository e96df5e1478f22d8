"""A pipeline's timeline: which stage computed which micro-batch when. Simulated or recorded, alike.

Forward is dark, backward pale, the weight's half of a split backward between them; idle is white.
Numbers are micro-batches, where nearly all of them fit; where stages have several chunks of the
model, every second chunk is paler. Of two chunks the second one's numbers have a prime, if it fits.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.typing import ColorType

from byhand.figures import pen, style
from byhand.figures.lanes import Bar, Panel, over_time, time_unit

COLOURS = {
    "forward": style.COMPUTE,
    "backward": "#f7dd9c",
    "backward_input": "#f7dd9c",
    "backward_weight": "#d08f3a",
}
NAMES = {"backward_input": "backward, input's half", "backward_weight": "backward, weight's half"}
CHUNK_STRENGTHS = (1.0, 0.62)  # every second chunk is paler
NAMED_SHARE = 0.9  # of a timeline's numbers must fit
PHASES = "warm-up", "steady state", "cool-down"


def schedule_timeline(
    *timelines: Any,
    names: Sequence[str] | None = None,
    unit: str | None = None,
    phases_of: Collection[str] = (),
) -> style.CourseFigure:
    """A row per stage, stage 0 on top, time from 0; several timelines share the axis of time.

    timelines: what `simulate` or `pipeline_parallel.timeline` returned. The titles say how long the
    stages idle, after the timelines' names where given. At the right: the most that a stage held at
    once, in micro-batches of a whole stage.
    unit: what the spans' numbers are; seconds, suitably scaled, when None. phases_of: the names of
    timelines of 1F1B in which brackets tell stage 0's warm-up, steady state and cool-down apart.
    """
    titles = [finding(timeline) for timeline in timelines]
    if names is not None:
        pairs = zip(names, titles, strict=True)
        titles = [f"{name}: {title[0].lower()}{title[1:]}" for name, title in pairs]
    headings = ["", *titles[1:]]  # the first title is the figure's
    panels = [_panel(*pair) for pair in zip(timelines, headings, strict=True)]
    figure = over_time(panels, titles[0], _key(timelines), unit, named=NAMED_SHARE)
    for axes, name, timeline in zip(figure.axes, names or (), timelines, strict=False):
        if name in phases_of:
            end = max(span.end for each in timelines for span in each.spans)
            _bracket_phases(axes, timeline, 1.0 if unit else time_unit(end)[0])
    return figure


def _bracket_phases(axes: Axes, timeline: Any, factor: float) -> None:
    """Over stage 0, in a row of their own: its warm-up, its steady state and its cool-down.

    factor: what times are multiplied by where they are drawn.
    """
    axes.set_ylim(timeline.num_stages - 0.5, -1.2)
    spans = [span for span in timeline.spans if span.stage == 0]
    spans.sort(key=lambda span: span.start)
    warm_up = [span.action.kind for span in spans].index("backward") - 1
    ends = 0, warm_up, len(spans) - warm_up, len(spans)
    for name, first, end in zip(PHASES, ends, ends[1:], strict=False):
        if first < end:
            left, right = factor * spans[first].start, factor * spans[end - 1].end
            pen.bracket(axes, (left, right), -0.44, -0.08)
            pen.small(axes, ((left + right) / 2, -0.85), name)


def finding(timeline: Any) -> str:
    """The sentence that a timeline shows."""
    shares = [idle / timeline.seconds for idle in timeline.idle_seconds]
    if max(shares) - min(shares) < 0.01:
        return f"Each stage idles {shares[0]:.0%} of the step"
    return f"The stages idle {timeline.idle_fraction:.0%} of the step on average"


def _key(timelines: Iterable[Any]) -> dict[str, ColorType]:
    timelines = list(timelines)
    kinds = {span.action.kind for timeline in timelines for span in timeline.spans}
    names = dict(NAMES)
    if {"backward", "backward_input"} <= kinds:  # they have the same colour
        kinds.discard("backward_input")
        names["backward"] = "backward, or its input's half"
    entries: dict[str, ColorType] = {names.get(k, k): COLOURS[k] for k in COLOURS if k in kinds}
    paler = [str(chunk) for chunk in range(1, max(map(_num_chunks, timelines)), 2)]
    if paler:
        tint = style.tint(COLOURS["forward"], CHUNK_STRENGTHS[1])
        entries[f"paler: chunk {', '.join(paler)}"] = tint
    return entries


def _num_chunks(timeline: Any) -> int:
    return 1 + max(span.action.chunk for span in timeline.spans)


def _panel(timeline: Any, heading: str) -> Panel:
    zero, chunks, bars = min(span.start for span in timeline.spans), _num_chunks(timeline), []
    for span in timeline.spans:
        action, edges = span.action, (span.start - zero, span.end - zero)
        colour = style.tint(COLOURS[action.kind], CHUNK_STRENGTHS[action.chunk % 2])
        name = f"{action.micro_batch}" + "'" * (chunks == 2 and action.chunk)
        bars.append(Bar(span.stage, *edges, colour, name, -0.43, 0.86))
    held = [f"holds {most / chunks:.3g}" for most in timeline.peak_in_flight]
    return Panel(pen.ranks(timeline.num_stages, "stage"), bars, heading, held)
