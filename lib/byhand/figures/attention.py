"""Attention over ranks: who computes which scores in which round, and who waited for keys."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from byhand.figures import parts, style
from byhand.figures.timeline import time_unit

SQUARE, GAP, LEFT, TOP = 2.75, 0.62, 0.34, 0.7  # inches
BAR_INCHES, AXIS_INCHES, BOTTOM = 0.2, 0.3, 0.14
PALEST = 0.42  # of the last round's colour
ROW_INCHES, ROW_LEFT, ROW_RIGHT, HEAD, FOOT = 0.3, 0.68, 0.2, 0.36, 0.5


class Part(NamedTuple):
    """A rectangle of scores: who computes it, when, for which positions; diagonal: half of it."""

    rank: int
    number: int
    queries: tuple[int, int]
    keys: tuple[int, int]
    diagonal: bool


class Round(NamedTuple):
    """One round of a rank, in seconds: it works on `owner`'s keys, then waits for the next."""

    owner: int
    start: float
    computed: float
    end: float


def attention_map(panels: Mapping[str, Sequence[Part]], title: str) -> Figure:
    """A square of queries by keys for each name; below it every rank's work over the average's.

    Colours are ranks, numbers rounds, from 0; later rounds are paler. White is never computed.
    """
    ranks = 1 + max(part.rank for some in panels.values() for part in some)
    height = TOP + SQUARE + AXIS_INCHES + BAR_INCHES * ranks + BOTTOM
    with style.styled():
        figure = style.new_figure(height, title)
        for number, (name, some) in enumerate(panels.items()):
            left = LEFT + number * (SQUARE + GAP)
            right = style.WIDTH_INCHES - left - SQUARE
            axes = style.axes_at(figure, left, TOP, right, height - TOP - SQUARE)
            _square(axes, some, name, number == 0)
            below = style.axes_at(figure, left, TOP + SQUARE + AXIS_INCHES, right, BOTTOM)
            _work(below, _areas(some, ranks))
    return figure


def _square(axes: Axes, some: Sequence[Part], name: str, first: bool) -> None:
    last = max(part.queries[1] for part in some)
    rounds = max(part.number for part in some)
    axes.set(xlim=(0, last), ylim=(last, 0), xticks=[], yticks=[])
    axes.set_title(name, fontsize=style.TEXT_POINTS, loc="left", pad=5)
    axes.set_xlabel("keys, by position", labelpad=3)
    axes.set_ylabel("queries" if first else "", labelpad=3)
    for part in some:
        (top, bottom), (left, right) = part.queries, part.keys
        strength = 1 - (1 - PALEST) * part.number / max(1, rounds)
        colour = style.tint(style.rank_colour(part.rank), strength)
        corners = [(left, top), (left, bottom), (right, bottom)]
        if part.diagonal:
            edge = {"edgecolor": style.PAPER, "linewidth": 0.8}
            axes.add_patch(Polygon(corners, facecolor=colour, **edge))
        else:
            corners = [(left, top), (right, bottom)]
            parts.box(axes, (left, top), (right - left, bottom - top), colour)
        middle = (sum(places) / len(corners) for places in zip(*corners, strict=True))
        parts.small(axes, middle, str(part.number), color=style.readable_on(colour))


def _areas(some: Sequence[Part], ranks: int) -> list[float]:
    """Every rank's scores, over the average of the ranks."""
    areas = [0.0] * ranks
    for part in some:
        (top, bottom), (left, right) = part.queries, part.keys
        areas[part.rank] += (bottom - top) * (right - left) / (2 if part.diagonal else 1)
    return [area * ranks / sum(areas) for area in areas]


def _work(axes: Axes, shares: Sequence[float]) -> None:
    axes.set(xlim=(0, 2.9), ylim=(len(shares) - 0.5, -0.5), xticks=[], yticks=[])
    axes.spines["bottom"].set_visible(False)
    for rank, share in enumerate(shares):
        text = f"rank {rank}: {share:.2f} ×"
        parts.stack(axes, rank, 0.82, [("", share, style.rank_colour(rank))], text)


def ring_timeline(runs: Mapping[str, Sequence[Sequence[Round]]], title: str) -> Figure:
    """A row per rank for each name, one axis of time: what it worked on in each round.

    A bar has the colour and the number of the rank whose keys it is about; white is waiting.
    """
    longest = max(row[-1].end for rows in runs.values() for row in rows)
    factor, unit = time_unit(longest)
    inside = sum(HEAD + ROW_INCHES * len(rows) for rows in runs.values())
    height, top = 0.32 + inside + FOOT, 0.32
    with style.styled():
        figure = style.new_figure(height, title)
        for number, (name, rows) in enumerate(runs.items()):
            top += HEAD
            bottom = height - top - ROW_INCHES * len(rows)
            axes = style.axes_at(figure, ROW_LEFT, top, ROW_RIGHT, bottom)
            axes.set(xlim=(0, longest * factor), ylim=(len(rows) - 0.5, -0.5))
            axes.set_title(name, fontsize=style.TEXT_POINTS, loc="left", pad=4)
            parts.rank_rows(axes, len(rows))
            for rank, row in enumerate(rows):
                for one in row:
                    _draw_round(axes, rank, one, factor)
            axes.set_xlabel(unit) if number == len(runs) - 1 else axes.set_xticks([])
            top += ROW_INCHES * len(rows)
    return figure


def _draw_round(axes: Axes, rank: int, one: Round, factor: float) -> None:
    start, computed, end = (moment * factor for moment in one[1:])
    colour = style.rank_colour(one.owner)
    wait, work = (end - computed, 0.8), (computed - start, 0.8)
    parts.box(axes, (computed, rank - 0.4), wait, style.PAPER, style.FAINT)
    if computed > start:  # else there is nothing to do in this round
        parts.box(axes, (start, rank - 0.4), work, colour)
        parts.name_inside(axes, ((start + computed) / 2, rank), work[0], str(one.owner), colour)
