"""A block of layers split over ranks: where its lanes part and meet, forward and backward."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byhand.figures import parts, style

TOP_INCHES, ABOVE_INCHES, BELOW_INCHES, LANE_INCHES = 0.72, 0.58, 0.5, 0.19
LEFT_INCHES, GAP_INCHES = 0.12, 0.07
NARROW = {"f": 0.3, "g": 0.3, "+": 0.2}  # inches; all others are WIDE
WIDE = 0.5
KEY = [
    ("replicated", style.FAINT, 0.16),
    ("sharded, a colour a rank", style.rank_colour(0), 0.16),
    ("partial in, replicated out", style.OP_COLOURS["all_reduce"], 0.16),
]


class Part(NamedTuple):
    """What data passes, by its name; f and g are where replicated and sharded meet.

    sharded: whether each rank computes its own share of it, or all ranks the same.
    """

    name: str
    sharded: bool = False


def block_flow(block: Sequence[Part], num_ranks: int, title: str) -> Figure:
    """The block once forward, from left to right, and once backward.

    Grey is replicated, a rank's colour its own shard. f sums in backward and g in forward; the
    other way each passes on what it gets. "+" takes in what came in before the last f.
    """
    row = ABOVE_INCHES + num_ranks * LANE_INCHES + BELOW_INCHES
    with style.styled():
        figure = style.new_figure(TOP_INCHES + 2 * row, title)
        parts.key(figure, LEFT_INCHES, 0.5, KEY)
        axes = style.canvas(figure)
        _draw_row(axes, block, num_ranks, TOP_INCHES, forward=True)
        _draw_row(axes, block, num_ranks, TOP_INCHES + row, forward=False)
    return figure


def _draw_row(axes: Axes, block: Sequence[Part], num_ranks: int, top: float, forward: bool) -> None:
    caption = "Forward  →" if forward else "←  Backward"
    axes.text(LEFT_INCHES, top + 0.1, caption, va="center", weight="bold")
    first, tall = top + ABOVE_INCHES, num_ranks * LANE_INCHES
    left, opened = LEFT_INCHES, LEFT_INCHES
    for part in block:
        wide = NARROW.get(part.name, WIDE)
        span = (left, wide, first, tall)
        if part.name in ("f", "g"):
            _draw_meeting(axes, span, "y" if forward else "grad_x", (part.name == "g") == forward)
        elif part.sharded:
            _draw_lanes(axes, span, num_ranks)
        else:
            _draw_box(axes, (left, first), (wide, tall), style.FAINT)
        if part.name == "+":
            _draw_shortcut(axes, opened, left + wide / 2, first)
            opened = left + wide + GAP_INCHES / 2
        look = {"ha": "center", "fontsize": style.SMALL_POINTS}
        axes.text(left + wide / 2, first - 0.09, part.name, va="center", **look)
        left += wide + GAP_INCHES


def _draw_box(axes: Axes, corner, size, colour: str) -> None:
    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor=style.PAPER, linewidth=0.8))


def _draw_lanes(axes: Axes, span, num_ranks: int) -> None:
    left, wide, first, _ = span
    for rank in range(num_ranks):
        colour = style.rank_colour(rank)
        corner = (left, first + rank * LANE_INCHES)
        _draw_box(axes, corner, (wide, LANE_INCHES), colour)


def _draw_meeting(axes: Axes, span, what: str, sums: bool) -> None:
    left, wide, first, tall = span
    colour = style.OP_COLOURS["all_reduce"] if sums else style.PAPER
    _draw_box(axes, (left, first), (wide, tall), colour)
    if not sums:
        edge = {"facecolor": "none", "edgecolor": style.FAINT, "linewidth": 1}
        axes.add_patch(Rectangle((left, first), wide, tall, **edge))
    text = f"all-reduce\nof {what}" if sums else "sends\nnothing"
    look = {"ha": "center", "va": "top", "fontsize": style.SMALL_POINTS, "linespacing": 1.2}
    weight = "bold" if sums else "normal"
    axes.text(left + wide / 2, first + tall + 0.06, text, weight=weight, **look)


def _draw_shortcut(axes: Axes, begin: float, end: float, first: float) -> None:
    height = first - 0.22
    look = {"color": style.COMMUNICATION, "lw": 1.2}
    axes.plot([begin, begin, end, end], [first - 0.02, height, height, first - 0.15], **look)
