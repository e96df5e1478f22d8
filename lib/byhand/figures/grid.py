"""The rank grid: every rank in the same cell of each panel, coloured by a group in each."""

from collections.abc import Mapping, Sequence
from math import ceil, log2
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from byhand.figures import pen, style

MOST_CELLS = 512  # of ranks; above, a cell is a whole host
ASPECT, PANEL_INCHES = 2.2, 3.3
MOST_CELL_INCHES, MOST_PANEL_INCHES = 0.27, 1.65
# Groups one after the other differ well; a group's colour comes again after eight.
STRENGTHS = (0.10, 0.34, 0.18, 0.42, 0.14, 0.38, 0.22, 0.46)
FEW_STRENGTHS = (0.08, 0.38, 0.20, 0.56)  # of up to four
MOST_RANKS_NAMED = 4

Groups = Sequence[Sequence[int]] | np.ndarray


def rank_grid(
    groups: Mapping[str, Groups],
    num_ranks: int,
    ranks_per_host: int = 8,
    follow: int = 0,
    title: str = "",
) -> style.CourseFigure:
    """One panel for each name in `groups`, lists of ranks of equal length, in tints of one hue.

    The group of rank `follow` has the full hue. A cell is a rank, hosts are outlined; of large
    worlds a cell is a host, in the colours of its first rank. A name is an axis, or several, and
    has the hue of the first, darker for experts' groups; embedding groups have a darker pp.
    """
    layout = _Layout(num_ranks, ranks_per_host)
    lines = ceil(len(groups) / 2)
    height = 0.7 + lines * (0.55 + layout.height)
    with style.plot(height, title, lines, 2, squeeze=False) as (figure, every):
        cell = "each square: a host" if layout.whole_hosts else "each frame: a host"
        look = {"x": 0.1 / style.WIDTH_INCHES, "ha": "left", "fontsize": style.SMALL_POINTS}
        figure.supxlabel(f"{cell} of {ranks_per_host}", **look)
        for axes in every.flat:
            style.bare(axes)
        for axes, (name, some) in zip(every.flat, groups.items(), strict=False):
            _draw_panel(axes, name, np.asarray(some), follow, layout)
    return figure


class _Layout:
    """Where each rank's cell is, the same in every panel: cells are numbered line by line."""

    def __init__(self, num_ranks: int, ranks_per_host: int):
        self.num_ranks, self.ranks_per_host = num_ranks, ranks_per_host
        self.whole_hosts = num_ranks > MOST_CELLS
        self.ranks_per_cell = ranks_per_host if self.whole_hosts else 1
        per_host = ranks_per_host // self.ranks_per_cell  # cells
        self.first_ranks = np.arange(0, num_ranks, self.ranks_per_cell)
        cells = len(self.first_ranks)
        doublings = max(0, round(log2((ASPECT * cells) ** 0.5 / per_host)))  # of hosts in a line
        self.columns = min(2**doublings, max(1, cells // per_host)) * per_host
        self.rows = ceil(cells / self.columns)
        side = min(MOST_CELL_INCHES, PANEL_INCHES / self.columns)
        self.height = min(self.rows * side, MOST_PANEL_INCHES)
        digits = len(str(num_ranks - 1))
        roomy = PANEL_INCHES / self.columns >= 0.09 * digits and self.height / self.rows >= 0.13
        self.numbered = roomy and not self.whole_hosts


def _draw_panel(axes: Axes, name: str, groups: np.ndarray, follow: int, layout: _Layout) -> None:
    followed = groups[(groups == follow).any(axis=1)].reshape(-1)
    colour = style.group_colour(name)
    axes.imshow(_image(groups, followed, colour, layout), aspect="auto", interpolation="nearest")
    axes.set(xlim=(-0.5, layout.columns - 0.5), ylim=(layout.rows - 0.5, -0.5))
    for first in () if layout.whole_hosts else layout.first_ranks[:: layout.ranks_per_host]:
        row, column = divmod(first, layout.columns)
        for edge, width in ((style.PAPER, 2.2), (style.INK, 0.6)):
            frame = Rectangle((column - 0.5, row - 0.5), layout.ranks_per_host, 1, fill=False)
            axes.add_patch(frame).set(ec=edge, lw=width, clip_on=False)
    for rank in range(layout.num_ranks if layout.numbered else 0):
        ink = style.readable_on(colour) if rank in followed else style.INK
        pen.small(axes, divmod(rank, layout.columns)[::-1], str(rank), color=ink)
    hosts = groups // layout.ranks_per_host
    told = f"{_where((hosts == hosts[:, :1]).all(axis=1))} · rank {follow}: {_members(followed)}"
    axes.set_title(told, loc="left", fontsize=style.SMALL_POINTS)
    look: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    look |= {"weight": "bold", "fontsize": style.SMALL_POINTS, "va": "bottom"}
    axes.annotate("■", (0, 1), (0, 17), color=colour, **look)
    axes.annotate(f"{name.replace('_', ' ')}  {_counts(groups)}", (0, 1), (11, 17), **look)


def _image(groups: np.ndarray, followed: np.ndarray, colour: str, layout: _Layout) -> np.ndarray:
    """The cells' colours [rows, columns, 3]."""
    number = np.full(layout.num_ranks, -1)
    number[groups] = np.arange(len(groups))[:, None]
    strengths = FEW_STRENGTHS if len(groups) <= len(FEW_STRENGTHS) else STRENGTHS
    tints = np.array([style.tint(colour, strength) for strength in strengths])
    image = np.ones((layout.rows * layout.columns, 3))
    shown = number[layout.first_ranks]
    # Where a cell is a host, only some groups are seen: they are numbered anew.
    _, order = np.unique(shown, return_inverse=True)
    hues = tints[order % len(tints)]
    image[: len(shown)] = np.where(shown[:, None] < 0, to_rgb(style.FAINT), hues)
    image[followed // layout.ranks_per_cell] = to_rgb(colour)
    return image.reshape(layout.rows, layout.columns, 3)


def _counts(groups: np.ndarray) -> str:
    number, size = groups.shape
    return f"{number:,} group{'s' if number > 1 else ''} of {size:,}"


def _where(inside: np.ndarray) -> str:
    if inside.all():
        return "all inside a host"
    if not inside.any():
        return "all across hosts"
    return f"{inside.sum():,} inside a host"


def _members(followed: np.ndarray) -> str:
    if len(followed) == 0:
        return "in none"
    shown = ", ".join(str(rank) for rank in followed[:MOST_RANKS_NAMED].tolist())
    return shown + (", ..." if len(followed) > MOST_RANKS_NAMED else "")
