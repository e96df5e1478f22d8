"""Who holds what, before and after a collective, or at several moments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from byhand.figures import pen, style
from byhand.figures.cells import Cell, cells

CELL_INCHES, HEADING_INCHES, TITLE_INCHES, ARROW_INCHES = 0.36, 0.3, 0.4, 0.42
MOST_COLUMNS_SIDE_BY_SIDE = 4


class Block(NamedTuple):
    """One shard of a tensor on one rank: its number, whose terms it sums, its text.

    Of nobody's terms, it is white.
    """

    column: int
    origins: tuple[int, ...]
    text: str


Rows = Sequence[Sequence[Block]]  # one entry per rank


class Picture(NamedTuple):
    """Before and after a collective: what `collective_pictures` draws."""

    before: Rows
    after: Rows
    name: str
    title: str

    @property
    def columns(self) -> int:
        return max(len(self.before), _columns([self.before, self.after]))

    @property
    def height(self) -> float:
        panels = 1 if self.columns <= MOST_COLUMNS_SIDE_BY_SIDE else 2
        each = HEADING_INCHES + CELL_INCHES * len(self.before)
        return TITLE_INCHES + panels * each + (panels - 1) * ARROW_INCHES


def collective_pictures(pictures: Iterable[Picture]) -> style.CourseFigure:
    """A row per rank, a column per shard of the whole tensor, at each end of an arrow.

    A block has the colour of the rank that its value came from; a sum has a stripe for each of its
    terms. An empty cell is a shard that the rank does not hold. Several pictures stand one below
    the other.
    """
    pictures = list(pictures)
    heights = [picture.height for picture in pictures]
    with style.styled():
        figure = style.new_figure(sum(heights), "", "constrained")
        subfigures = figure.subfigures(len(pictures), 1, squeeze=False, height_ratios=heights)
        for part, picture in zip(subfigures.flat, pictures, strict=True):
            part.suptitle(picture.title, x=0.1 / style.WIDTH_INCHES, ha="left", **style.TITLE)
            name, columns = picture.name.replace("_", "-"), picture.columns
            if columns > MOST_COLUMNS_SIDE_BY_SIDE:
                panels = {"before": picture.before, "after": picture.after}
                _draw_down(part, panels, [(name, "")], columns)
                continue
            before, between, after = part.subplots(1, 3, width_ratios=(1, 0.42, 1))
            draw_panel(before, picture.before, columns, "before")
            draw_panel(after, picture.after, columns, "after")
            after.set_yticks([])
            style.bare(between)
            pen.arrow(between, (0, 0.5), (1, 0.5))
            pen.small(between, (0.5, 0.54), name, va="bottom")
    return figure


def panel_stack(
    panels: Mapping[str, Rows], arrows: Sequence[tuple[str, str]], title: str, together: int = 0
) -> style.CourseFigure:
    """The same rows at several moments, one below the other, with an arrow between two.

    arrows: for each, what is said beside it, and what beside another one back up, if anything.
    together: how many blocks of the first panel's rows have a frame in common; 0 for no frames.
    """
    tall = sum(HEADING_INCHES + CELL_INCHES * len(rows) for rows in panels.values())
    with style.styled():
        height = TITLE_INCHES + tall + ARROW_INCHES * len(arrows)
        figure = style.new_figure(height, title, "constrained")
        first = _draw_down(figure, panels, arrows, _columns(panels.values()))
        for rank, row in enumerate(next(iter(panels.values()))):
            for block in row[::together] if together else ():
                corner, size = (block.column + 0.02, rank - 0.46), (together - 0.04, 0.92)
                pen.box(first, corner, size, "none", style.INK, 1.1)
    return figure


def _columns(panels: Iterable[Rows]) -> int:
    return 1 + max((b.column for rows in panels for row in rows for b in row), default=0)


def _draw_down(
    figure: Figure | SubFigure, panels: Mapping[str, Rows], arrows: Sequence, columns: int
) -> Axes:
    """Panels and arrows in turn; the first panel's axes."""
    tall = [HEADING_INCHES + CELL_INCHES * len(rows) for rows in panels.values()]
    ratios = [tall[0], *(inches for rest in tall[1:] for inches in (ARROW_INCHES, rest))]
    every = figure.subplots(len(ratios), 1, height_ratios=ratios)
    for axes, (moment, rows) in zip(every[::2], panels.items(), strict=True):
        draw_panel(axes, rows, columns, moment)
    for axes, (label, back) in zip(every[1::2], arrows, strict=True):
        style.bare(axes, xlim=(0, 1), ylim=(0, 1))
        pen.arrow(axes, (0.5, 1), (0.5, 0))
        axes.text(0.52, 0.5, label, va="center")
        if back:
            pen.arrow(axes, (0.42, 0), (0.42, 1))
            axes.text(0.4, 0.5, back, va="center", ha="right")
    return every[0]


def draw_panel(axes: Axes, rows: Rows, columns: int, heading: str) -> None:
    """A row for each rank and a column for each shard; stripes and texts as blocks say."""
    filled = [
        Cell(rank, block.column, [*map(style.rank_colour, block.origins)], block.text)
        for rank, blocks in enumerate(rows)
        for block in blocks
    ]
    cells(axes, pen.ranks(len(rows)), columns, filled, heading)
