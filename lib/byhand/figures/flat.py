"""Which rank holds which shards of what."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from byhand.figures import pen, style


def shards_held(
    panels: Mapping[str, Sequence[str]], kinds: Mapping[str, float], num_ranks: int, title: str
) -> style.CourseFigure:
    """A panel for each heading: a row a rank, a block for each kind, cut into as many shards.

    kinds: how long each is, the same on all ranks. panels: of which kinds a rank holds its own
    shard alone; of all others it holds them all. Its own are dark, those that others hold, too,
    pale; what a rank does not hold is white.
    """
    shape, look = (-(-len(panels) // 2), 2), {"squeeze": False}
    with style.plot(0.6 + 1.5 * shape[0], title, *shape, **look) as (figure, grid):
        for axes, (heading, sharded) in zip(grid.flat, panels.items(), strict=True):
            axes.set_title(heading, loc="left", fontsize=style.TEXT_POINTS)
            axes.set(xlim=(0, sum(kinds.values())), xticks=[])
            axes.spines["bottom"].set_visible(False)
            pen.rows(axes, pen.ranks(num_ranks))
            for rank in range(num_ranks):
                _held_by(axes, rank, num_ranks, kinds, sharded)
        pen.key(grid[0, 0], {kind: style.wire_colour(kind) for kind in kinds}, inches=0.3)
    return figure


def _held_by(
    axes: Axes, rank: int, num_ranks: int, kinds: Mapping[str, float], sharded: Sequence[str]
) -> None:
    left = 0.0
    for kind, length in kinds.items():
        for shard in range(num_ranks):
            strength = 1.0 if shard == rank else 0.0 if kind in sharded else 0.4
            colour, wide = style.tint(style.wire_colour(kind), strength), length / num_ranks
            edge = style.FAINT if strength else style.PAPER
            pen.box(axes, (left, rank - 0.42), (wide, 0.84), colour, edge, 0.5)
            left += wide
        pen.box(axes, (left - length, rank - 0.42), (length, 0.84), "none", style.PAPER, 2)
        if rank == 0 and length == max(kinds.values()):  # the rest of it, where there is room
            middle = left - length * (1 - 1 / num_ranks) / 2
            pen.small(axes, (middle, rank), "gone" if kind in sharded else "copies")
