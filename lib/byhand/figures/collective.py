"""Who holds what before and after a collective."""

from collections.abc import Iterable, Sequence
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
    cell = (style.WIDTH_INCHES - LABEL_WIDTH - 0.1) / picture.num_columns
    second = top + _panel_height(picture.before) + ARROW_HEIGHT
    for y, rows, moment in ((top, picture.before, "before"), (second, picture.after, "after")):
        _draw_panel(axes, (LABEL_WIDTH, y), (cell, picture.num_columns), rows, moment)
        _label_ranks(axes, y, len(rows))
    middle = LABEL_WIDTH + cell * picture.num_columns / 2
    parts.arrow(axes, (middle, second - ARROW_HEIGHT + 0.08), (middle, second))
    label = picture.name.replace("_", "-")
    axes.text(middle + 0.12, second - ARROW_HEIGHT / 2, label, va="center")


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
