"""Who holds what before and after a collective."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

CELL_HEIGHT, LABEL_WIDTH, HEADING_HEIGHT, TITLE_HEIGHT = 0.36, 0.68, 0.26, 0.36
ARROW_WIDTH, ARROW_HEIGHT = 1.2, 0.42
MOST_COLUMNS_SIDE_BY_SIDE = 4


class Block(NamedTuple):
    """One piece of a tensor on one rank: its place in the whole, whose terms it sums, its text."""

    column: int
    origins: tuple[int, ...]
    text: str


Rows = Sequence[Sequence[Block]]  # one entry per rank


class Picture(NamedTuple):
    """What `collective_picture` draws: see there."""

    before: Rows
    after: Rows
    name: str = ""
    title: str = ""

    @property
    def num_columns(self) -> int:
        columns = [block.column for row in (*self.before, *self.after) for block in row]
        return max(len(self.before), 1 + max(columns, default=0))

    @property
    def side_by_side(self) -> bool:
        return self.num_columns <= MOST_COLUMNS_SIDE_BY_SIDE

    @property
    def height(self) -> float:
        panels = _panel_height(self.before)
        panels += 0 if self.side_by_side else ARROW_HEIGHT + _panel_height(self.after)
        return TITLE_HEIGHT + panels + 0.15


def collective_picture(before: Rows, after: Rows, name: str = "", title: str = "") -> Figure:
    """A row per rank, a column per piece of the whole tensor, at each end of an arrow.

    A block has the colour of the rank that its value came from; a sum has a stripe for each of its
    terms. An empty cell is a piece that the rank does not hold.
    """
    return collective_pictures([Picture(before, after, name, title)])


def collective_pictures(pictures: Iterable[Picture]) -> Figure:
    """Several such pictures in one figure, one below the other."""
    pictures = list(pictures)
    with style.styled():
        figure = style.new_figure(sum(picture.height for picture in pictures))
        axes, top = style.canvas(figure), 0.0
        for picture in pictures:
            axes.text(0.1, top + 0.08, picture.title, va="top", **style.TITLE)
            draw = _draw_across if picture.side_by_side else _draw_down
            draw(axes, top + TITLE_HEIGHT, picture)
            top += picture.height
    return figure


def _draw_across(axes: Axes, top: float, picture: Picture) -> None:
    panel_width = (style.WIDTH_INCHES - LABEL_WIDTH - ARROW_WIDTH - 0.1) / 2
    cell = panel_width / picture.num_columns
    left = LABEL_WIDTH + panel_width
    grid = (cell, picture.num_columns)
    _draw_panel(axes, (LABEL_WIDTH, top), grid, picture.before, "before")
    _draw_panel(axes, (left + ARROW_WIDTH, top), grid, picture.after, "after")
    _label_ranks(axes, top, len(picture.before))
    y = top + HEADING_HEIGHT + CELL_HEIGHT * len(picture.before) / 2
    parts.arrow(axes, (left + 0.1, y), (left + ARROW_WIDTH - 0.1, y))
    name = picture.name.replace("_", "-")
    parts.small(axes, (left + ARROW_WIDTH / 2, y - 0.06), name, va="bottom")


def _draw_down(axes: Axes, top: float, picture: Picture) -> None:
    panels = {"before": picture.before, "after": picture.after}
    _draw_stack(axes, top, panels, [(picture.name.replace("_", "-"), "")], picture.num_columns)


def panel_stack(
    panels: Mapping[str, Rows], arrows: Sequence[tuple[str, str]], title: str, together: int = 1
) -> Figure:
    """The same rows at several moments, one below the other, with an arrow between two.

    arrows: for each, what is said beside it, and what beside another one back up, if anything.
    together: how many blocks of the first panel's rows have a frame in common.
    """
    columns = 1 + max(block.column for rows in panels.values() for row in rows for block in row)
    height = TITLE_HEIGHT + sum(map(_panel_height, panels.values())) + 0.15
    with style.styled():
        figure = style.new_figure(height + ARROW_HEIGHT * len(arrows), title)
        axes = style.canvas(figure)
        _draw_stack(axes, TITLE_HEIGHT, panels, arrows, columns)
        cell = (style.WIDTH_INCHES - LABEL_WIDTH - 0.1) / columns
        for rank, row in enumerate(next(iter(panels.values())) if together > 1 else ()):
            y = TITLE_HEIGHT + HEADING_HEIGHT + CELL_HEIGHT * rank + 0.01
            for block in row[::together]:
                corner = LABEL_WIDTH + cell * block.column + 0.01, y
                size = together * cell - 0.02, CELL_HEIGHT - 0.02
                parts.box(axes, corner, size, "none", style.INK, 1.1)
    return figure


def _draw_stack(
    axes: Axes, top: float, panels: Mapping[str, Rows], arrows: Sequence, columns: int
) -> None:
    cell = (style.WIDTH_INCHES - LABEL_WIDTH - 0.1) / columns
    middle = LABEL_WIDTH + cell * columns / 2
    for number, (moment, rows) in enumerate(panels.items()):
        if number:
            label, back = arrows[number - 1]
            parts.arrow(axes, (middle, top + 0.08), (middle, top + ARROW_HEIGHT))
            axes.text(middle + 0.12, top + ARROW_HEIGHT / 2, label, va="center")
            if back:
                parts.arrow(axes, (middle - 0.5, top + ARROW_HEIGHT), (middle - 0.5, top + 0.08))
                place = (middle - 0.62, top + ARROW_HEIGHT / 2)
                axes.text(*place, back, va="center", ha="right")
            top += ARROW_HEIGHT
        _draw_panel(axes, (LABEL_WIDTH, top), (cell, columns), rows, moment)
        _label_ranks(axes, top, len(rows))
        top += _panel_height(rows)


def _panel_height(rows: Rows) -> float:
    return HEADING_HEIGHT + CELL_HEIGHT * len(rows)


def _label_ranks(axes: Axes, top: float, num_ranks: int) -> None:
    for rank in range(num_ranks):
        y = top + HEADING_HEIGHT + CELL_HEIGHT * (rank + 0.5)
        axes.text(LABEL_WIDTH - 0.1, y, f"rank {rank}", ha="right", va="center")


def _draw_panel(
    axes: Axes, corner: tuple[float, float], grid: tuple[float, int], rows: Rows, moment: str
) -> None:
    (left, top), (cell, num_columns) = corner, grid
    axes.text(left + cell * num_columns / 2, top + 0.1, moment, ha="center", va="center")
    for rank, blocks in enumerate(rows):
        y = top + HEADING_HEIGHT + CELL_HEIGHT * rank
        for column in range(num_columns):
            place = _stripe(left + cell * column, y, cell)
            parts.box(axes, *place, style.PAPER, style.FAINT)
        for block in blocks:
            _draw_block(axes, left + cell * block.column, y, cell, block)


def _draw_block(axes: Axes, x: float, y: float, cell: float, block: Block) -> None:
    colours = [style.rank_colour(origin) for origin in block.origins]
    for index, colour in enumerate(colours):
        parts.box(axes, *_stripe(x, y, cell, index, len(colours)), colour, width=0)
    text = axes.text(x + cell / 2, y + CELL_HEIGHT / 2, block.text, ha="center", va="center")
    if len(colours) == 1:
        text.set_color(style.readable_on(colours[0]))
    else:
        text.set_bbox({"boxstyle": "round,pad=0.15", "fc": style.PAPER, "ec": "none"})


def _stripe(x: float, y: float, cell: float, number: int = 0, count: int = 1) -> tuple:
    """Corner and size of a cell's rectangle, or of one of its equal vertical stripes."""
    width = (cell - 0.05) / count
    return (x + 0.025 + number * width, y + 0.025), (width, CELL_HEIGHT - 0.05)
