"""A pipeline's timeline: which stage computed which micro-batch when. Simulated or recorded, alike.

Forward is dark, backward pale, the weight's half of a split backward between them; idle is white.
Numbers are micro-batches, where nearly all of them fit; where stages have several chunks of the
model, every second chunk is paler.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style
from byhand.figures.timeline import time_unit

ROW_INCHES, BAR = 0.34, 0.86  # BAR: share of a row
LEFT_INCHES, RIGHT_INCHES, BOTTOM_INCHES = 0.72, 1.02, 0.46
TITLE_INCHES, KEY_INCHES, GAP_INCHES, HEAD_INCHES = 0.36, 0.3, 0.12, 0.3
COLOURS = {
    "forward": style.COMPUTE,
    "backward": "#f7dd9c",
    "backward_input": "#f7dd9c",
    "backward_weight": "#d08f3a",
}
CHUNK_STRENGTHS = (1.0, 0.62)  # every second chunk is paler
NAMED_SHARE = 0.9  # of a timeline's numbers must fit, else none is drawn
KEY = {
    "forward": "forward",
    "backward": "backward",
    "backward_input": "backward, input's half",
    "backward_weight": "backward, weight's half",
}


def schedule_timeline(
    *timelines, names: Sequence[str] | None = None, unit: str | None = None
) -> Figure:
    """A row per stage, stage 0 on top, time from 0; several timelines share the axis of time.

    timelines: what `simulate` or `pipeline_parallel.timeline` returned. The titles say how long the
    stages idle, after the timelines' names where given. At the right: the most that a stage held at
    once, in micro-batches of a whole stage.
    unit: what the spans' numbers are; seconds, suitably scaled, when None.
    """
    titles = [finding(timeline) for timeline in timelines]
    if names is not None:
        pairs = zip(names, titles, strict=True)
        titles = [f"{name}: {title[0].lower()}{title[1:]}" for name, title in pairs]
    longest = max(timeline.seconds for timeline in timelines)
    factor, label = (1.0, unit) if unit else time_unit(longest)
    rows = [timeline.num_stages for timeline in timelines]
    heads = [TITLE_INCHES + KEY_INCHES + GAP_INCHES] + [HEAD_INCHES + 0.16] * (len(rows) - 1)
    height = sum(heads) + ROW_INCHES * sum(rows) + BOTTOM_INCHES
    with style.styled():
        figure = style.new_figure(height, titles[0])
        _draw_key(figure, timelines)
        top = 0.0
        for number, timeline in enumerate(timelines):
            top += heads[number]
            bottom = height - top - ROW_INCHES * rows[number]
            axes = style.axes_at(figure, LEFT_INCHES, top, RIGHT_INCHES, bottom)
            axes.set(xlim=(0, longest * factor), ylim=(rows[number] - 0.5, -0.5))
            parts.rank_rows(axes, rows[number], word="stage")
            _draw_spans(axes, timeline, factor)
            _draw_held(axes, timeline)
            if number > 0:
                place = (0.1 / style.WIDTH_INCHES, 1 - (top - HEAD_INCHES) / height)
                figure.text(*place, titles[number], va="top", **style.TITLE)
            top += ROW_INCHES * rows[number]
            axes.set_xlabel(label) if number == len(rows) - 1 else axes.set_xticks([])
    return figure


def finding(timeline) -> str:
    """The sentence that a timeline shows."""
    shares = [idle / timeline.seconds for idle in timeline.idle_seconds]
    if max(shares) - min(shares) < 0.01:
        return f"Each stage idles {shares[0]:.0%} of the step"
    return f"The stages idle {timeline.idle_fraction:.0%} of the step on average"


def _draw_key(figure: Figure, timelines) -> None:
    kinds = {span.action.kind for timeline in timelines for span in timeline.spans}
    if "backward" in kinds:
        kinds.discard("backward_input")  # it has the same colour
    entries = [(KEY[kind], colour, 0.16) for kind, colour in COLOURS.items() if kind in kinds]
    chunks = max(map(_num_chunks, timelines))
    if chunks > 1:
        parts_of_model = ", ".join(str(chunk + 1) for chunk in range(1, chunks, 2))
        paler = style.tint(COLOURS["forward"], CHUNK_STRENGTHS[1])
        entries.append((f"paler: part {parts_of_model}", paler, 0.16))
    parts.key(figure, LEFT_INCHES, TITLE_INCHES + 0.12, entries)


def _num_chunks(timeline) -> int:
    return 1 + max(span.action.chunk for span in timeline.spans)


def _draw_spans(axes: Axes, timeline, factor: float) -> None:
    zero = min(span.start for span in timeline.spans)
    names = []
    for span in timeline.spans:
        colour = style.tint(COLOURS[span.action.kind], CHUNK_STRENGTHS[span.action.chunk % 2])
        left, width = (span.start - zero) * factor, (span.end - span.start) * factor
        parts.box(axes, (left, span.stage - BAR / 2), (width, BAR), colour, width=0.6)
        middle = (left + width / 2, span.stage)
        names.append((middle, width, str(span.action.micro_batch), colour))
    if sum(parts.fits(axes, width, text) for _, width, text, _ in names) < NAMED_SHARE * len(names):
        return
    for name in names:
        parts.name_inside(axes, *name)


def _draw_held(axes: Axes, timeline) -> None:
    """At the right end of each row, the most that its stage held, in whole micro-batches."""
    place = {"xycoords": ("axes fraction", "data"), "va": "center_baseline"}
    for stage, held in enumerate(timeline.peak_in_flight):
        text = f"holds {held / _num_chunks(timeline):.3g}"
        axes.annotate(text, (1.02, stage), fontsize=style.TEXT_POINTS, **place)
