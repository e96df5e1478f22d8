"""A transformer layer split over ranks: where its lanes part and meet, forward and backward."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import pen, style

TOP_INCHES, ABOVE_INCHES, BELOW_INCHES, LANE_INCHES = 0.72, 0.58, 0.5, 0.19
LEFT_INCHES, GAP_INCHES, ROOM_INCHES = 0.12, 0.07, 6.64
WIDE, WIDER, WIDTHS = 0.5, 0.9, {"+": 0.2, "f": 0.3, "g": 0.3, "ḡ": 0.3}
BEHIND_INCHES = 0.1  # of a message behind a product
Insides = Sequence[Sequence[str]]
Pair = tuple[float, float]  # across and down, in inches
INSIDE: Insides = (
    ["q k v", "heads", "out"],
    ["A", "GELU", "B"],
)  # each rank computes its own features


class Split(NamedTuple):
    """How a layer is split: what stands around what is split by feature, and what meetings send.

    meetings: by name, the collective forward and the one backward, "" where it sends nothing.
    again: the meeting whose messages of backward, x once more and then grad_x, travel behind the
    products after it. colours: of what is sent.
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
    {"a message": style.INK},
    by_token=True,
    again="g",
    colours={"all_gather": style.INK, "reduce_scatter": style.INK},
)


def block_flow(split: Split, num_ranks: int, title: str, insides: Insides = INSIDE) -> Figure:
    """The layer once forward, from left to right, and once backward.

    Grey is replicated, a rank's colour its own shard. Where all is split, tokens lie below each
    other and features side by side; else each rank has a lane. "+" takes in what came in before.
    insides: what is split by feature in each half of the layer that is drawn.
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
    two = [inside[0] for inside in insides] if split.again else []  # two products in backward
    widths = [WIDER if name in two else WIDTHS.get(name, WIDE) for name in names]
    scale, opened = min(1.6, ROOM_INCHES / sum(wide + GAP_INCHES for wide in widths)), left
    for name, width in zip(names, widths, strict=True):
        wide = scale * (width + GAP_INCHES) - GAP_INCHES
        corner, size = (left, first), (wide, tall)
        if name in two and not forward:
            _draw_overlap(axes, corner, size, name, num_ranks)
        elif name == split.again and not forward:
            pen.box(axes, corner, size, style.PAPER, style.FAINT, 1)
            middle = left + wide / 2, first + tall / 2
            pen.small(axes, middle, "behind\ngrad_x,\ngrad_A", va="center")
        elif name in split.meetings:
            op = split.meetings[name][not forward]
            _draw_meeting(axes, corner, size, op, forward, split.colours.get(op, style.PAPER))
        else:
            inside = any(name in some for some in insides)
            _draw_shards(axes, corner, size, num_ranks, inside, split.by_token)
        if name == "+":
            ends, high = (opened, left + wide / 2), first - 0.22
            look = {"color": style.COMMUNICATION, "lw": 1.2}
            axes.plot(
                [*ends[:1] * 2, *ends[1:] * 2], [first - 0.02, high, high, first - 0.17], **look
            )
            opened = left + wide + GAP_INCHES / 2
        if forward or name not in two:
            pen.small(axes, (left + wide / 2, first - 0.09), name, va="center")
        left += wide + GAP_INCHES


def _draw_shards(
    axes: Axes, corner: Pair, size: Pair, num_ranks: int, inside: bool, by_token: bool
) -> None:
    """inside: split by feature; else by token, or replicated."""
    upright, held = inside, inside or by_token
    each = (size[0] / num_ranks, size[1]) if upright else (size[0], size[1] / num_ranks)
    for rank in range(num_ranks):
        place = corner[0] + upright * rank * each[0], corner[1] + (not upright) * rank * each[1]
        colour, edge = (style.rank_colour(rank), style.PAPER) if held else 2 * (style.FAINT,)
        pen.box(axes, place, each, colour, edge)
        if by_token and min(each) >= 0.13:
            middle = place[0] + each[0] / 2, place[1] + each[1] / 2
            pen.small(axes, middle, str(rank), color=style.readable_on(colour))


def _draw_overlap(axes: Axes, corner: Pair, size: Pair, name: str, num_ranks: int) -> None:
    """A column layer's backward, from right to left: two products, and a message behind each."""
    half, below = (size[0] / 2 - 0.02, size[1]), corner[1] + size[1] + 0.05
    did = {f"grad_{name}": "reduce-scatter\nof grad_x", "grad_x": "all-gather\nof x, again"}
    for number, (product, message) in enumerate(did.items()):
        left = corner[0] + number * (half[0] + 0.04)
        middle = left + half[0] / 2
        _draw_shards(axes, (left, corner[1]), half, num_ranks, inside=True, by_token=True)
        pen.small(axes, (middle, corner[1] - 0.09), product, va="center")
        pen.box(axes, (left, below), (half[0], BEHIND_INCHES), style.INK)
        side = {"ha": "left" if number else "right", "va": "top", "linespacing": 1.2}
        edge = left + 0.02 if number else left + half[0] - 0.06
        pen.small(axes, (edge, below + BEHIND_INCHES + 0.04), message, weight="bold", **side)


def _draw_meeting(axes: Axes, corner, size, op: str, forward: bool, colour) -> None:
    pen.box(axes, corner, size, colour, colour if op else style.FAINT, 1)
    what = "x" if op == "all_gather" else "y"
    if not forward:
        what = "grad_y" if op == "all_gather" else "grad_x"
    text = f"{op.replace('_', '-')}\nof {what}" if op else "sends\nnothing"
    look = {"va": "top", "linespacing": 1.2, "weight": "bold" if op else "normal"}
    pen.small(axes, (corner[0] + size[0] / 2, corner[1] + size[1] + 0.06), text, **look)
