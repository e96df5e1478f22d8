"""A transformer layer split over ranks: where its lanes part and meet, forward and backward."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import pen, style

TOP_INCHES, ABOVE_INCHES, BELOW_INCHES, LANE_INCHES = 0.72, 0.58, 0.5, 0.19
LEFT_INCHES, GAP_INCHES, ROOM_INCHES = 0.12, 0.07, 6.64
WIDE, WIDTHS = 0.5, {"+": 0.2, "f": 0.3, "g": 0.3, "ḡ": 0.3}
GREY, PALE = "#6b7580", 0.35  # in keys: of no rank
Insides = Sequence[Sequence[str]]
INSIDE: Insides = (
    ["q k v", "heads", "out"],
    ["A", "GELU", "B"],
)  # each rank computes its own features


class Split(NamedTuple):
    """How a layer is split: what stands around what is split by feature, and what meetings send.

    meetings: by name, the collective forward and the one backward, "" where it sends nothing.
    again: the meeting whose all-gather of x is made a second time in backward. colours: of what is
    sent.
    """

    before: list[str]
    after: list[str]
    meetings: dict[str, tuple[str, str]]
    key: dict[str, object]
    by_token: bool  # what stands around it; else all ranks compute the same
    again: str = ""
    colours: Mapping[str, str] = style.OP_COLOURS


TENSOR = Split(
    ["norm", "f"],
    ["g", "+"],
    {"f": ("", "all_reduce"), "g": ("all_reduce", "")},
    {
        "replicated": style.FAINT,
        "sharded, a colour a rank": style.rank_colour(0),
        "partial in, replicated out": style.OP_COLOURS["all_reduce"],
    },
    by_token=False,
)
SEQUENCE = Split(
    ["norm", "g"],
    ["ḡ", "drop", "+"],
    {"g": ("all_gather", "reduce_scatter"), "ḡ": ("reduce_scatter", "all_gather")},
    {
        "hue: rank": style.rank_colour(0),
        "pale: its own tokens": style.tint(GREY, PALE),
        "strong: its own features": GREY,
        "black: something is sent": style.INK,
    },
    by_token=True,
    again="g",
    colours={"all_gather": style.INK, "reduce_scatter": style.INK},
)


def block_flow(split: Split, num_ranks: int, title: str, insides: Insides = INSIDE) -> Figure:
    """The layer once forward, from left to right, and once backward.

    Grey is replicated, a rank's colour its own shard. "+" takes in what came in before. insides:
    what is split by feature in each half of the layer that is drawn.
    """
    row = ABOVE_INCHES + num_ranks * LANE_INCHES + BELOW_INCHES
    height = TOP_INCHES + 2 * row
    with style.drawing(height, title) as (figure, axes):
        pen.key(axes, split.key, 1 - 0.62 / height)
        _draw_row(axes, split, insides, num_ranks, TOP_INCHES, forward=True)
        _draw_row(axes, split, insides, num_ranks, TOP_INCHES + row, forward=False)
    return figure


def _draw_row(
    axes: Axes, split: Split, insides: Insides, num_ranks: int, top: float, forward: bool
) -> None:
    caption = "Forward  →" if forward else "←  Backward"
    axes.text(LEFT_INCHES, top + 0.1, caption, va="center", weight="bold")
    first, tall, left = top + ABOVE_INCHES, num_ranks * LANE_INCHES, LEFT_INCHES
    names = [n for inside in insides for n in [*split.before, *inside, *split.after]]
    total = sum(WIDTHS.get(name, WIDE) + GAP_INCHES for name in names)
    scale, opened = min(1.6, ROOM_INCHES / total), left
    for name in names:
        wide = scale * (WIDTHS.get(name, WIDE) + GAP_INCHES) - GAP_INCHES
        if name in split.meetings:
            op, twice = split.meetings[name][not forward], name == split.again and not forward
            ink = split.colours[op] if op else style.PAPER
            _draw_meeting(axes, (left, first), (wide, tall), op, forward, ink, twice)
        else:
            inside = any(name in some for some in insides)
            for rank in range(num_ranks):
                colour = style.tint(style.rank_colour(rank), 1.0 if inside else PALE)
                colour = colour if inside or split.by_token else style.FAINT
                edge = style.PAPER if inside or split.by_token else style.FAINT
                corner = left, first + rank * LANE_INCHES
                pen.box(axes, corner, (wide, LANE_INCHES), colour, edge)
        if name == "+":
            ends, high = (opened, left + wide / 2), first - 0.22
            look = {"color": style.COMMUNICATION, "lw": 1.2}
            axes.plot(
                [*ends[:1] * 2, *ends[1:] * 2], [first - 0.02, high, high, first - 0.15], **look
            )
            opened = left + wide + GAP_INCHES / 2
        pen.small(axes, (left + wide / 2, first - 0.09), name, va="center")
        left += wide + GAP_INCHES


def _draw_meeting(axes: Axes, corner, size, op: str, forward: bool, colour, twice: bool) -> None:
    """twice: x is gathered again there, before what op sends."""
    parts = 2 if twice else 1
    for part in range(parts):
        place = corner[0] + part * size[0] / parts, corner[1]
        edge = style.PAPER if twice else colour if op else style.FAINT
        pen.box(axes, place, (size[0] / parts, size[1]), colour, edge, 1)
    what = "x" if op == "all_gather" else "y"
    if not forward:
        what = "grad_y" if op == "all_gather" else "grad_x"
    text = f"{op.replace('_', '-')}\nof {what}" if op else "sends\nnothing"
    text = f"all-gather of x, again,\nthen {op.replace('_', '-')} of {what}" if twice else text
    look = {"va": "top", "linespacing": 1.2, "weight": "bold" if op else "normal"}
    pen.small(axes, (corner[0] + size[0] / 2, corner[1] + size[1] + 0.06), text, **look)
