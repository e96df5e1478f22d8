"""A flat parameter: parameters end to end, above them the shards that ranks keep of them."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from byhand.figures import parts, style
from byhand.words import counted

HEIGHT_INCHES, LEFT, RIGHT = 1.95, 0.1, 0.1
TOP_OF_PARAMETERS, TOP_OF_SHARDS, BAR = 0.62, 1.18, 0.4
SHADES = ("#c9d1d9", "#e3e8ed")


def flat_shards(numbers: Mapping[str, int], num_ranks: int, title: str | None = None) -> Figure:
    """numbers: how many numbers each parameter has, by name, in order. Widths are to scale."""
    total = sum(numbers.values())
    each = -(-total // num_ranks)
    padding = each * num_ranks - total
    if title is None:
        zeros = f" {counted(padding, 'zero')} of padding" if padding else " no padding"
        title = f"{total} numbers in {num_ranks} equal shards of {each}:{zeros}"
    inches = (style.WIDTH_INCHES - LEFT - RIGHT) / (each * num_ranks)
    with style.styled():
        figure = style.new_figure(HEIGHT_INCHES, title)
        canvas = style.canvas(figure)
        named = {**numbers, "0": padding} if padding else numbers
        left = LEFT
        for place, (name, count) in enumerate(named.items()):
            colour = style.PAPER if name == "0" else SHADES[place % 2]
            _box(canvas, left, TOP_OF_PARAMETERS, count * inches, f"{name}: {count}", colour)
            left += count * inches
        for rank in range(num_ranks):
            place = (LEFT + rank * each * inches, TOP_OF_SHARDS, each * inches)
            _box(canvas, *place, f"rank {rank}: {each}", style.rank_colour(rank))
        for top, text in ((0.5, "parameters, end to end"), (1.76, "what each rank keeps")):
            parts.small(canvas, (LEFT, top), text, ha="left", va="center")
    return figure


def _box(canvas, left: float, top: float, width: float, text: str, colour: str) -> None:
    edge = style.FAINT if colour == style.PAPER else style.PAPER
    names = text, text.partition(":")[0]
    parts.named_box(canvas, (left, top), (width, BAR), names, colour, edge)
