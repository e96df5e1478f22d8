"""Attention over ranks: who computes which scores in which round."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from byhand.figures import pen, style

SQUARE, BAR_INCHES = 2.75, 0.2
PALEST = 0.42  # of the last round's colour
LEAST_INCHES = 0.24  # of a triangle's sides, for its number


class Tile(NamedTuple):
    """A rectangle of scores: who computes it, when, for which positions; diagonal: half of it."""

    rank: int
    number: int
    queries: tuple[int, int]
    keys: tuple[int, int]
    diagonal: bool


def attention_map(panels: Mapping[str, Sequence[Tile]], title: str) -> style.CourseFigure:
    """A square of queries by keys for each name; below it every rank's work over the average's.

    Colours are ranks, numbers rounds, from 0; later rounds are paler. White is never computed.
    """
    ranks = 1 + max(tile.rank for some in panels.values() for tile in some)
    look = {"height_ratios": (SQUARE, BAR_INCHES * ranks), "squeeze": False}
    height = SQUARE + BAR_INCHES * ranks + 1.25
    with style.plot(height, title, 2, len(panels), **look) as (figure, grid):
        for (name, some), square, below in zip(panels.items(), *grid, strict=True):
            _square(square, some, name)
            pen.rows(below, [""] * ranks)
            below.set(xlim=(0, 2.9), xticks=[], xlabel="each rank's work, over the average")
            below.spines["bottom"].set_visible(False)
            for rank, share in enumerate(_shares(some, ranks)):
                end = pen.stack(below, rank, 0.82, [("", share, style.rank_colour(rank))])
                pen.beside(below, (end, rank), f"rank {rank}: {share:.2f} ×")
        grid[0, 0].set_ylabel("queries")
    return figure


def _square(axes: Axes, some: Sequence[Tile], name: str) -> None:
    last = max(tile.queries[1] for tile in some)
    rounds = max(tile.number for tile in some)
    axes.set(xlim=(0, last), ylim=(last, 0), xticks=[], yticks=[], xlabel="keys, by position")
    axes.set_title(name, fontsize=style.TEXT_POINTS, loc="left")
    axes.set_box_aspect(1)
    for tile in some:
        (top, bottom), (left, right) = tile.queries, tile.keys
        strength = 1 - (1 - PALEST) * tile.number / max(1, rounds)
        colour = style.tint(style.rank_colour(tile.rank), strength)
        corners = [(left, top), (left, bottom), (right, bottom), (right, top)]
        corners = corners[: 3 if tile.diagonal else 4]
        axes.add_patch(Polygon(corners, fc=colour, ec=style.PAPER, lw=0.8))
        if tile.diagonal and SQUARE * (bottom - top) < LEAST_INCHES * last:
            continue
        x, y = (sum(along) / len(corners) for along in zip(*corners, strict=True))
        pen.small(axes, (x, y), str(tile.number), color=style.readable_on(colour))


def _shares(some: Sequence[Tile], ranks: int) -> list[float]:
    """Every rank's scores, over the average of the ranks."""
    areas = [0.0] * ranks
    for tile in some:
        (top, bottom), (left, right) = tile.queries, tile.keys
        areas[tile.rank] += (bottom - top) * (right - left) / (2 if tile.diagonal else 1)
    return [area * ranks / sum(areas) for area in areas]
