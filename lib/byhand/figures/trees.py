"""Trees of ranks, beside each other."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

TOP_INCHES, LEVEL_INCHES, BOTTOM_INCHES = 0.6, 0.42, 0.25
LEAF = "#f0d9a8"


def trees(parents: Sequence[Sequence[int]], title: str) -> Figure:
    """Rank r stands at place r from left to right in each: parents[tree][rank], -1 for a root.

    Ranks with children are dark, leaves pale.
    """
    depths = [[_depth(tree, rank) for rank in range(len(tree))] for tree in parents]
    height = TOP_INCHES + LEVEL_INCHES * max(map(max, depths)) + BOTTOM_INCHES
    width = style.WIDTH_INCHES / len(parents)
    with style.styled():
        figure = style.new_figure(height, title)
        axes = style.canvas(figure)
        for number, tree in enumerate(parents):
            left, step = number * width + 0.3, (width - 0.6) / max(len(tree) - 1, 1)
            places = [
                (left + step * rank, TOP_INCHES + LEVEL_INCHES * depth)
                for rank, depth in enumerate(depths[number])
            ]
            _draw_tree(axes, tree, places)
    return figure


def _draw_tree(axes: Axes, parents: Sequence[int], places: list[tuple[float, float]]) -> None:
    for place, parent in zip(places, parents, strict=True):
        if parent >= 0:
            ends = zip(place, places[parent], strict=True)
            axes.plot(*ends, color=style.COMMUNICATION, linewidth=1.4, zorder=1)
    for rank, place in enumerate(places):
        colour = style.COMPUTE if rank in parents else LEAF
        axes.plot(*place, "o", color=colour, markersize=17, zorder=2)
        look = {"color": style.readable_on(colour), "fontsize": style.TEXT_POINTS, "zorder": 3}
        parts.small(axes, place, str(rank), **look)


def _depth(parents: Sequence[int], rank: int) -> int:
    return 0 if parents[rank] < 0 else 1 + _depth(parents, parents[rank])
