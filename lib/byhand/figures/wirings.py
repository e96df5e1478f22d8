"""Ranks and the wires between them; and under each wiring what every algorithm takes there."""

from collections.abc import Collection, Mapping
from math import cos, pi, sin

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byhand.figures import parts, style

HUB = -1  # the switch, where there is one
LEFT, TOP, GRAPH_INCHES, ROW_INCHES, BOTTOM = 1.45, 0.38, 1.1, 0.22, 0.1  # inches

Wires = Collection[tuple[int, int]]


def wirings(
    wires: Mapping[str, Wires], table: Mapping[str, Mapping[str, float]], num_ranks: int, title: str
) -> Figure:
    """A graph for each name in `wires`, of (from, to) pairs, HUB being a switch, side by side.

    table: for each name, a number for each row, such as an algorithm's seconds; the least is bold,
    what is less than the first row's is shaded.
    A pair whose reverse is there too is a line; one alone is an arrow.
    """
    rows = list(next(iter(table.values())))
    height = TOP + GRAPH_INCHES + ROW_INCHES * (len(rows) + 1) + BOTTOM
    with style.styled():
        figure = style.new_figure(height, title)
        page = style.canvas(figure)
        column = (style.WIDTH_INCHES - LEFT - 0.1) / len(wires)
        for number, row in enumerate(rows):
            page.text(0.1, _row(number), row.replace("_", " "), va="center")
        for number, (name, pairs) in enumerate(wires.items()):
            middle = LEFT + column * (number + 0.5)
            _draw_graph(page, (middle, TOP + GRAPH_INCHES / 2), pairs, num_ranks)
            page.text(middle, _row(-1), name.replace("_", " "), ha="center", va="center")
            least, first = min(table[name].values()), table[name][rows[0]]
            for place, row in enumerate(rows):
                best = "bold" if table[name][row] <= 1.01 * least else "normal"
                text = f"{table[name][row]:,.0f}"
                if table[name][row] < 0.99 * first:
                    corner = middle - column / 2, _row(place) - ROW_INCHES / 2
                    page.add_patch(Rectangle(corner, column, ROW_INCHES, color=style.FAINT, lw=0))
                page.text(middle, _row(place), text, ha="center", va="center", weight=best)
    return figure


def _row(number: int) -> float:
    return TOP + GRAPH_INCHES + ROW_INCHES * (number + 1.6)


def _draw_graph(page: Axes, middle, pairs: Wires, num_ranks: int) -> None:
    places = _places(pairs, num_ranks)
    at = {rank: (middle[0] + x, middle[1] + y) for rank, (x, y) in places.items()}
    for one, other in pairs:
        both = (other, one) in pairs
        look = {"arrowstyle": "-" if both else "-|>", "color": style.COMMUNICATION, "lw": 1.0}
        look |= {"shrinkA": 0, "shrinkB": 0 if both else 5, "mutation_scale": 8}
        page.annotate("", xy=at[other], xytext=at[one], arrowprops=look, zorder=1)
    if HUB in at:
        page.plot(*at[HUB], "s", markersize=9, color=style.COMMUNICATION, zorder=4)
    for rank in range(num_ranks):
        page.plot(*at[rank], "o", markersize=9.5, color=style.COMPUTE, zorder=5)
        parts.small(page, at[rank], str(rank), fontsize=7, zorder=6, color=style.PAPER)


def _places(pairs: Wires, num_ranks: int) -> dict[int, tuple[float, float]]:
    """A heap's rows where the wires are those of a heap; else a circle, the hub in its middle."""
    heap = {(rank, (rank - 1) // 2) for rank in range(1, num_ranks)}
    if set(pairs) == heap | {(parent, rank) for rank, parent in heap}:
        return {rank: _in_heap(rank) for rank in range(num_ranks)}
    turns = [2 * pi * rank / num_ranks for rank in range(num_ranks)]
    circle = {rank: (0.43 * sin(turn), -0.43 * cos(turn)) for rank, turn in enumerate(turns)}
    return circle | ({HUB: (0.0, 0.0)} if any(HUB in pair for pair in pairs) else {})


def _in_heap(rank: int) -> tuple[float, float]:
    level = (rank + 1).bit_length() - 1
    return 0.95 * ((rank + 1.5) / 2**level - 1.5), 0.28 * level - 0.42
