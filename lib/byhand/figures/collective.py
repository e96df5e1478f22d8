"""Who holds what before and after a collective."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byhand.figures import style

CELL_HEIGHT, LABEL_WIDTH, HEADING_HEIGHT, TITLE_HEIGHT = 0.36, 0.68, 0.26, 0.36
ARROW_WIDTH, ARROW_HEIGHT = 1.2, 0.42
MOST_COLUMNS_SIDE_BY_SIDE = 4


class Block(NamedTuple):
    """One piece of a tensor on one rank: its place in the whole, whose terms it sums, its text."""

    column: int
    origins: tuple[int, ...]
    text: str


Rows = Sequence[Iterable[Block]]  # one entry per rank


def collective_picture(before: Rows, after: Rows, name: str = "", title: str = "") -> Figure:
    """A row per rank, a column per piece of the whole tensor, at each end of an arrow.

    A block has the colour of the rank that its value came from; a sum has a stripe for each of its
    terms. An empty cell is a piece that the rank does not hold.
    """
    before, after = [list(row) for row in before], [list(row) for row in after]
    columns = [block.column for row in (*before, *after) for block in row]
    num_columns = max(len(before), 1 + max(columns, default=0))
    draw = _side_by_side if num_columns <= MOST_COLUMNS_SIDE_BY_SIDE else _stacked
    with style.styled():
        return draw(before, after, name, title, num_columns)


def _side_by_side(before: Rows, after: Rows, name: str, title: str, num_columns: int) -> Figure:
    height = TITLE_HEIGHT + _panel_height(before) + 0.1
    figure = style.new_figure(height, title)
    axes = style.canvas(figure)
    panel_width = (style.WIDTH_INCHES - LABEL_WIDTH - ARROW_WIDTH - 0.1) / 2
    cell = panel_width / num_columns
    left = LABEL_WIDTH + panel_width
    _draw_panel(axes, (LABEL_WIDTH, TITLE_HEIGHT), cell, num_columns, before, "before")
    _draw_panel(axes, (left + ARROW_WIDTH, TITLE_HEIGHT), cell, num_columns, after, "after")
    _label_ranks(axes, TITLE_HEIGHT, len(before))
    y = TITLE_HEIGHT + HEADING_HEIGHT + CELL_HEIGHT * len(before) / 2
    _arrow(axes, (left + 0.1, y), (left + ARROW_WIDTH - 0.1, y))
    place = {"ha": "center", "va": "bottom", "fontsize": style.SMALL_POINTS}
    axes.text(left + ARROW_WIDTH / 2, y - 0.06, name.replace("_", "-"), **place)
    return figure


def _stacked(before: Rows, after: Rows, name: str, title: str, num_columns: int) -> Figure:
    second = TITLE_HEIGHT + _panel_height(before) + ARROW_HEIGHT
    figure = style.new_figure(second + _panel_height(after) + 0.1, title)
    axes = style.canvas(figure)
    cell = (style.WIDTH_INCHES - LABEL_WIDTH - 0.1) / num_columns
    for top, rows, moment in ((TITLE_HEIGHT, before, "before"), (second, after, "after")):
        _draw_panel(axes, (LABEL_WIDTH, top), cell, num_columns, rows, moment)
        _label_ranks(axes, top, len(rows))
    middle = LABEL_WIDTH + cell * num_columns / 2
    _arrow(axes, (middle, second - ARROW_HEIGHT + 0.08), (middle, second))
    axes.text(middle + 0.12, second - ARROW_HEIGHT / 2, name.replace("_", "-"), va="center")
    return figure


def _panel_height(rows: Rows) -> float:
    return HEADING_HEIGHT + CELL_HEIGHT * len(rows)


def _label_ranks(axes: Axes, top: float, num_ranks: int) -> None:
    for rank in range(num_ranks):
        y = top + HEADING_HEIGHT + CELL_HEIGHT * (rank + 0.5)
        axes.text(LABEL_WIDTH - 0.1, y, f"rank {rank}", ha="right", va="center")


def _draw_panel(
    axes: Axes,
    corner: tuple[float, float],
    cell: float,
    num_columns: int,
    rows: Rows,
    moment: str,
) -> None:
    left, top = corner
    axes.text(left + cell * num_columns / 2, top + 0.1, moment, ha="center", va="center")
    for rank, blocks in enumerate(rows):
        y = top + HEADING_HEIGHT + CELL_HEIGHT * rank
        for column in range(num_columns):
            outline = _box(left + cell * column, y, cell, fc=style.PAPER, ec=style.FAINT, lw=0.8)
            axes.add_patch(outline)
        for block in blocks:
            _draw_block(axes, left + cell * block.column, y, cell, block)


def _draw_block(axes: Axes, x: float, y: float, cell: float, block: Block) -> None:
    colours = [style.rank_colour(origin) for origin in block.origins]
    for index, colour in enumerate(colours):
        axes.add_patch(_box(x, y, cell, index, len(colours), fc=colour, lw=0))
    text = axes.text(x + cell / 2, y + CELL_HEIGHT / 2, block.text, ha="center", va="center")
    if len(colours) == 1:
        text.set_color(style.readable_on(colours[0]))
    else:
        text.set_bbox({"boxstyle": "round,pad=0.15", "fc": style.PAPER, "ec": "none"})


def _box(x: float, y: float, cell: float, stripe: int = 0, num_stripes: int = 1, **look):
    """A cell's rectangle, or one of its equal vertical stripes."""
    width = (cell - 0.05) / num_stripes
    return Rectangle((x + 0.025 + stripe * width, y + 0.025), width, CELL_HEIGHT - 0.05, **look)


def _arrow(axes: Axes, tail: tuple[float, float], head: tuple[float, float]) -> None:
    look = {"arrowstyle": "-|>", "color": style.INK, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=head, xytext=tail, arrowprops=look)
