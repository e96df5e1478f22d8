"""A transformer layer split over ranks: where its lanes part and meet, forward and backward."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from byhand.figures import pen, style

TOP_INCHES, ABOVE_INCHES, BELOW_INCHES, LANE_INCHES = 0.72, 0.58, 0.5, 0.19
LEFT_INCHES, GAP_INCHES, ROOM_INCHES = 0.12, 0.07, 6.64
WIDE, WIDTHS = 0.5, {"+": 0.2, "f": 0.3, "g": 0.3}

INSIDE: Sequence[Sequence[str]] = (
    ["q k v", "heads", "out"],
    ["A", "ReLU", "B"],
)  # each rank computes its own features


class Split(NamedTuple):
    """How a layer is split: what stands around what is split by feature, and what meetings send.

    meetings: by name, the collective forward and the one backward, "" where it sends nothing.
    """

    before: list[str]
    after: list[str]
    meetings: dict[str, tuple[str, str]]
    key: dict[str, object]


TENSOR = Split(
    ["norm", "f"],
    ["g", "+"],
    {"f": ("", "all_reduce"), "g": ("all_reduce", "")},
    {
        "replicated": style.FAINT,
        "sharded, a colour a rank": style.rank_colour(0),
        "partial in, replicated out": style.OP_COLOURS["all_reduce"],
    },
)


def block_flow(split: Split, num_ranks: int, title: str) -> style.CourseFigure:
    """The layer once forward, from left to right, and once backward.

    Grey is replicated, a rank's colour its own shard. "+" takes in what came in before.
    """
    row = ABOVE_INCHES + num_ranks * LANE_INCHES + BELOW_INCHES
    height = TOP_INCHES + 2 * row
    with style.drawing(height, title) as (figure, axes):
        pen.key(axes, split.key, 1 - 0.62 / height)
        _draw_row(axes, split, num_ranks, TOP_INCHES, forward=True)
        _draw_row(axes, split, num_ranks, TOP_INCHES + row, forward=False)
    return figure


def _draw_row(axes: Axes, split: Split, num_ranks: int, top: float, forward: bool) -> None:
    caption = "Forward  →" if forward else "←  Backward"
    axes.text(LEFT_INCHES, top + 0.1, caption, va="center", weight="bold")
    first, tall, left = top + ABOVE_INCHES, num_ranks * LANE_INCHES, LEFT_INCHES
    names = [n for inside in INSIDE for n in [*split.before, *inside, *split.after]]
    widths = [WIDTHS.get(name, WIDE) for name in names]
    scale, opened = min(1.6, ROOM_INCHES / sum(wide + GAP_INCHES for wide in widths)), left
    for name, width in zip(names, widths, strict=True):
        wide = scale * (width + GAP_INCHES) - GAP_INCHES
        corner, size = (left, first), (wide, tall)
        if name in split.meetings:
            _draw_meeting(axes, corner, size, split.meetings[name][not forward], forward)
        else:
            inside = any(name in some for some in INSIDE)
            _draw_shards(axes, corner, size, num_ranks, inside)
        if name == "+":
            ends, high = (opened, left + wide / 2), first - 0.22
            across, down = [*ends[:1] * 2, *ends[1:] * 2], [first - 0.02, high, high, first - 0.17]
            axes.plot(across, down, color=style.COMMUNICATION, lw=1.2)
            opened = left + wide + GAP_INCHES / 2
        pen.small(axes, (left + wide / 2, first - 0.09), name, va="center")
        left += wide + GAP_INCHES


def _draw_shards(
    axes: Axes, corner: pen.Pair, size: pen.Pair, num_ranks: int, inside: bool
) -> None:
    """inside: split by feature; else replicated."""
    each = (size[0] / num_ranks, size[1]) if inside else (size[0], size[1] / num_ranks)
    for rank in range(num_ranks):
        place = corner[0] + inside * rank * each[0], corner[1] + (not inside) * rank * each[1]
        colour, edge = (style.rank_colour(rank), style.PAPER) if inside else 2 * (style.FAINT,)
        pen.box(axes, place, each, colour, edge)


def _draw_meeting(axes: Axes, corner: pen.Pair, size: pen.Pair, op: str, forward: bool) -> None:
    colour = style.OP_COLOURS.get(op, style.PAPER)
    pen.box(axes, corner, size, colour, colour if op else style.FAINT, 1)
    what = "y" if forward else "grad_x"
    text = f"{op.replace('_', '-')}\nof {what}" if op else "sends\nnothing"
    look = {"va": "top", "linespacing": 1.2, "weight": "bold" if op else "normal"}
    pen.small(axes, (corner[0] + size[0] / 2, corner[1] + size[1] + 0.06), text, **look)
