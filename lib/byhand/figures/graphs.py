"""Ranks and the lines between them: trees, and wirings with what every algorithm takes there."""

from collections.abc import Collection, Mapping, Sequence
from math import cos, pi, sin

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import pen, style
from byhand.figures.cells import Cell, cells

HUB = -1  # the switch, where there is one
LEAF = "#f0d9a8"

Points = Mapping[int, tuple[float, float]]  # where each rank is drawn
Wires = Collection[tuple[int, int]]


def _graph(axes: Axes, at: Points, wires: Wires, size: float, pale: Collection[int] = ()) -> None:
    """Ranks at their points; a pair whose reverse is there too is a line, one alone an arrow."""
    for one, other in wires:
        both = (other, one) in wires
        look = {"arrowstyle": "-", "shrinkB": 0} if both else {"shrinkB": 5, "mutation_scale": 8}
        pen.arrow(axes, at[one], at[other], style.COMMUNICATION, 1.2, **look)
    for rank, point in at.items():
        colour = LEAF if rank in pale else style.COMPUTE
        if rank == HUB:
            axes.plot(*point, "s", markersize=size, color=style.COMMUNICATION, zorder=4)
            continue
        axes.plot(*point, "o", markersize=size, color=colour, zorder=5, clip_on=False)
        pen.small(axes, point, str(rank), zorder=6, color=style.readable_on(colour))


def trees(parents: Sequence[Sequence[int]], title: str) -> Figure:
    """Trees side by side: rank r is r-th from the left. parents[tree][rank], -1 for a root.

    Ranks with children are dark, leaves pale.
    """
    points = [{rank: (rank, _depth(tree, rank)) for rank in range(len(tree))} for tree in parents]
    most = max(depth for tree in points for _, depth in tree.values())
    look = {"sharey": True, "squeeze": False}
    with style.plot(0.9 + 0.42 * most, title, 1, len(parents), **look) as (figure, grid):
        for axes, tree, at in zip(grid.flat, parents, points, strict=True):
            style.bare(axes, xlim=(-0.5, len(tree) - 0.5), ylim=(most + 0.4, -0.4))
            pairs = [(rank, parent) for rank, parent in enumerate(tree) if parent >= 0]
            leaves = set(range(len(tree))) - set(tree)
            _graph(axes, at, [*pairs, *((b, a) for a, b in pairs)], 17, leaves)
    return figure


def _depth(parents: Sequence[int], rank: int) -> int:
    return 0 if parents[rank] < 0 else 1 + _depth(parents, parents[rank])


def wirings(
    wires: Mapping[str, Wires], table: Mapping[str, Mapping[str, float]], num_ranks: int, title: str
) -> Figure:
    """A graph for each name in `wires`, of (from, to) pairs, HUB being a switch, side by side.

    table: for each name, a number for each row, such as an algorithm's seconds; the least is bold,
    what is less than the first row's is shaded.
    """
    rows = list(next(iter(table.values())))
    shape = {"height_ratios": (1.3, 0.22 * len(rows))}
    with style.plot(2.0 + 0.22 * len(rows), title, 2, len(wires), **shape) as (figure, grid):
        for (name, pairs), graph, below in zip(wires.items(), *grid, strict=True):
            graph.text(0, 0.72, name.replace("_", " "), ha="center", in_layout=False)
            style.bare(graph, xlim=(-0.55, 0.55), ylim=(0.8, -0.5))
            _graph(graph, _points(pairs, num_ranks), pairs, 11)
            filled = []
            for row, took in enumerate(table[name].values()):
                shade = style.FAINT if took < 0.99 * table[name][rows[0]] else style.PAPER
                best = "bold" if took <= 1.01 * min(table[name].values()) else "normal"
                filled.append(Cell(row, 0, [shade], f"{took:,.0f}", best))
            cells(below, [row.replace("_", " ") for row in rows], 1, filled)
            below.tick_params(labelleft=below is grid[1, 0])
    return figure


def _points(pairs: Wires, num_ranks: int) -> Points:
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
