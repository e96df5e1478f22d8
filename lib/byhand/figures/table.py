"""A table of numbers as bars: a row a name, a column a quantity, each to a scale of its own."""

from collections.abc import Callable, Mapping

from byhand.figures import pen, style

ROOM = 1.75  # times the longest bar: behind it stands its number

Columns = Mapping[str, tuple[Mapping[str, float | None], Callable[[float], str]]]


def bar_table(columns: Columns, title: str, hues: Mapping[str, object]) -> style.CourseFigure:
    """columns: {heading: ({row: value}, how a value is written)}; None: there is no such number.

    hues: each row's colour.
    """
    look = {"sharey": True, "squeeze": False}
    with style.plot(0.75 + 0.25 * len(hues), title, 1, len(columns), **look) as (figure, grid):
        for axes, (heading, (values, text)) in zip(grid[0], columns.items(), strict=True):
            pen.rows(axes, hues)
            most = max(value or 0 for value in values.values())
            axes.set(xlim=(0, ROOM * most), xticks=[])
            axes.set_title(heading, loc="left", fontsize=style.SMALL_POINTS)
            axes.spines["bottom"].set_visible(False)
            for row, (name, hue) in enumerate(hues.items()):
                value = values[name]
                pen.stack(axes, row, 0.72, [("", value or 0, hue)])
                pen.beside(axes, (value or 0, row), "–" if value is None else text(value), 3)
    return figure
