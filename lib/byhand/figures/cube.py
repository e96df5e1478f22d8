"""Ranks as blocks of one cube: layers along pp, slices of each layer along tp, rows along dp."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon

from byhand.figures import style

Coordinates = tuple[int, int, int]  # along dp, tp, pp
STEPS = {"dp": (1.3, 0.72), "tp": (0.0, -1.55), "pp": (2.6, 0.0)}  # from one rank to the next
WORDS = {"tp": "slices", "dp": "rows", "pp": "layers"}  # and the order of a title
SIDE, DEPTH = 0.78, 0.3


def rank_cube(
    ranks: Mapping[Coordinates, int], follow: int, words: Mapping[str, str] = WORDS
) -> style.CourseFigure:
    """Every rank as a block, and lines from `follow` to those it forms a group with, by axis.

    ranks: by coordinates along dp, tp and pp. The blocks of one replica have one shade.
    words: what the ranks along each axis have different ones of.
    """
    mine = next(at for at, rank in ranks.items() if rank == follow)
    groups = {
        axis: sorted(at for at in ranks if (*at[:k], *at[k + 1 :]) == (*mine[:k], *mine[k + 1 :]))
        for k, axis in enumerate(STEPS)
    }
    replicas = max(1, max(at[0] for at in ranks))
    with style.plot(3.3, _finding(ranks, follow, groups)) as (figure, axes):
        style.bare(axes, aspect="equal")
        for at in sorted(ranks, key=lambda at: (-at[0], at[1], at[2])):
            _block(axes, _corner(at), ranks[at], at[0] / replicas)
        for axis, members in groups.items():
            if len(members) > 1:
                _group(axes, members, axis, words[axis], behind=mine[0] > 0)
        axes.autoscale_view()
    return figure


def _finding(
    ranks: Mapping[Coordinates, int], follow: int, groups: Mapping[str, list[Coordinates]]
) -> str:
    """With whom `follow` shares each of its groups, the axes in their order."""
    others = {axis: sorted({ranks[at] for at in groups[axis]} - {follow}) for axis in WORDS}
    told = [f"{', '.join(map(str, some))} along {axis}" for axis, some in others.items() if some]
    return f"Rank {follow}'s partners: {'; '.join(told)}" if told else "One rank has no partner"


def _corner(at: Coordinates) -> tuple[float, float]:
    pairs = list(zip(at, STEPS.values(), strict=True))
    return sum(n * step[0] for n, step in pairs), sum(n * step[1] for n, step in pairs)


def _block(axes: Axes, corner: tuple[float, float], rank: int, back: float) -> None:
    x, y, s, d = *corner, SIDE, DEPTH
    faces = [(x, y), (x + s, y), (x + s, y + s), (x, y + s)]
    top = [(x, y + s), (x + s, y + s), (x + s + d, y + s + d), (x + d, y + s + d)]
    side = [(x + s, y), (x + s + d, y + d), (x + s + d, y + s + d), (x + s, y + s)]
    for corners, light in ((faces, 0.86), (top, 0.94), (side, 0.74)):
        shade = [min(1.0, light - 0.22 * back + 0.1 * c) for c in to_rgb(style.COMPUTE)]
        axes.add_patch(Polygon(corners, facecolor=shade, edgecolor=style.INK, linewidth=0.7))
    label: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 13, "zorder": 6}
    axes.text(x + s / 2, y + s / 2, str(rank), weight="bold", **label)


def _group(axes: Axes, members: list[Coordinates], axis: str, what: str, behind: bool) -> None:
    middles = [(x + SIDE / 2, y + SIDE / 2) for x, y in map(_corner, members)]
    colour = style.AXIS_COLOURS[axis]
    (x, y), (u, v) = middles[0], middles[-1]
    free = {  # of lines and blocks: beside the farthest partner, over the top one, along the line
        "dp": (x, y - 0.6, "center") if behind else (u + 0.75, v + 0.22, "left"),
        "tp": (x + 0.15, y + 0.97, "center"),
        "pp": ((x + u) / 2 + 0.1, y + (0.22 if behind else -0.22), "center"),
    }
    marks: dict[str, Any] = {"marker": "o", "markersize": 21, "markerfacecolor": style.PAPER}
    axes.plot(*zip(*middles, strict=True), color=colour, linewidth=2.4, zorder=3, **marks)
    word: dict[str, Any] = {"color": colour, "weight": "bold", "fontsize": 10, "va": "center"}
    box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.5}
    across, up, aligned = free[axis]
    axes.text(across, up, f"{axis}: {what}", bbox=box, ha=aligned, zorder=5, **word)
