"""A block of layers split over ranks: where its lanes part and meet, forward and backward."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

TOP_INCHES, ABOVE_INCHES, BELOW_INCHES, LANE_INCHES = 0.72, 0.58, 0.5, 0.19
LEFT_INCHES, GAP_INCHES = 0.12, 0.07
NARROW = {"+": 0.2}  # inches; meetings are 0.3, all others WIDE
WIDE, MEETING, PALE = 0.5, 0.3, 0.35
GREY = "#6b7580"  # in keys: of no rank
TENSOR = {"f": ("", "all_reduce"), "g": ("all_reduce", "")}  # forward, backward
SEQUENCE = {"g": ("all_gather", "reduce_scatter"), "ḡ": ("reduce_scatter", "all_gather")}
KEY = {
    "replicated": style.FAINT,
    "sharded, a colour a rank": style.rank_colour(0),
    "partial in, replicated out": style.OP_COLOURS["all_reduce"],
}
SEQUENCE_KEY = {
    "pale: by token": style.tint(GREY, PALE),
    "dark: by feature; hue: rank": GREY,
    "all-gather": style.OP_COLOURS["all_gather"],
    "reduce-scatter": style.OP_COLOURS["reduce_scatter"],
}


class Part(NamedTuple):
    """What data passes, by its name; some names are meetings, where one placement becomes another.

    sharded: by "feature" or "token" where each rank computes its own share; "" where all compute
    the same.
    """

    name: str
    sharded: str = ""


def block_flow(
    block: Sequence[Part],
    num_ranks: int,
    title: str,
    meetings: Mapping[str, tuple[str, str]] = TENSOR,
) -> Figure:
    """The block once forward, from left to right, and once backward.

    Grey is replicated, a rank's colour its own shard. meetings: by name, the collective forward and
    the one backward, "" where it sends nothing. "+" takes in what came in before the last meeting.
    """
    row = ABOVE_INCHES + num_ranks * LANE_INCHES + BELOW_INCHES
    height = TOP_INCHES + 2 * row
    with style.drawing(height, title) as (figure, axes):
        parts.key(axes, KEY if meetings is TENSOR else SEQUENCE_KEY, 1 - 0.62 / height)
        for number in (0, 1):
            ops = {name: both[number] for name, both in meetings.items()}
            _draw_row(axes, block, num_ranks, TOP_INCHES + number * row, ops, not number)
    return figure


def _draw_row(
    axes: Axes,
    block: Sequence[Part],
    num_ranks: int,
    top: float,
    ops: Mapping[str, str],
    forward: bool,
) -> None:
    caption = "Forward  →" if forward else "←  Backward"
    axes.text(LEFT_INCHES, top + 0.1, caption, va="center", weight="bold")
    first, tall = top + ABOVE_INCHES, num_ranks * LANE_INCHES
    left, opened = LEFT_INCHES, LEFT_INCHES
    widths = {**NARROW, **dict.fromkeys(ops, MEETING)}
    total = sum(widths.get(part.name, WIDE) + GAP_INCHES for part in block)
    scale = min(1.0, (style.WIDTH_INCHES - 3 * LEFT_INCHES) / total)
    for part in block:
        wide = scale * (widths.get(part.name, WIDE) + GAP_INCHES) - GAP_INCHES
        span = (left, wide, first, tall)
        if part.name in ops:
            _draw_meeting(axes, span, _said(ops[part.name], forward), ops[part.name])
        elif part.sharded:
            _draw_lanes(axes, span, num_ranks, PALE if part.sharded == "token" else 1.0)
        else:
            parts.box(axes, (left, first), (wide, tall), style.FAINT)
        if part.name == "+":
            _draw_shortcut(axes, opened, left + wide / 2, first)
            opened = left + wide + GAP_INCHES / 2
        parts.small(axes, (left + wide / 2, first - 0.09), part.name, va="center")
        left += wide + GAP_INCHES


def _said(op: str, forward: bool) -> str:
    if not op:
        return "sends\nnothing"
    what = {"all_reduce": "y", "reduce_scatter": "y", "all_gather": "x"}[op]
    if not forward:
        what = {"all_gather": "grad_y"}.get(op, "grad_x")
    return f"{op.replace('_', '-')}\nof {what}"


def _draw_lanes(axes: Axes, span, num_ranks: int, strength: float) -> None:
    left, wide, first, _ = span
    for rank in range(num_ranks):
        colour = style.tint(style.rank_colour(rank), strength)
        corner = (left, first + rank * LANE_INCHES)
        parts.box(axes, corner, (wide, LANE_INCHES), colour)


def _draw_meeting(axes: Axes, span, text: str, op: str) -> None:
    left, wide, first, tall = span
    parts.box(axes, (left, first), (wide, tall), style.OP_COLOURS[op] if op else style.PAPER)
    if not op:
        parts.box(axes, (left, first), (wide, tall), "none", style.FAINT, 1)
    look = {"va": "top", "linespacing": 1.2, "weight": "bold" if op else "normal"}
    parts.small(axes, (left + wide / 2, first + tall + 0.06), text, **look)


def _draw_shortcut(axes: Axes, begin: float, end: float, first: float) -> None:
    height = first - 0.22
    look = {"color": style.COMMUNICATION, "lw": 1.2}
    axes.plot([begin, begin, end, end], [first - 0.02, height, height, first - 0.15], **look)
