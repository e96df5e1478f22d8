"""What leaves a node in a step, one bar for each order of the axes."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import style

BAR_INCHES, TOP_INCHES, BOTTOM_INCHES, LEFT_INCHES, RIGHT_INCHES = 0.3, 0.42, 0.5, 1.5, 0.9
CHARACTER_INCHES = 0.08


def leaving_bars(leaving: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """A stacked bar per row, such as {"tp-dp-pp": {"tp": 0, "dp": 4e9}}, in the axes' hues.

    Values are bytes; a group over several axes has the hue of the first.
    """
    totals = {row: sum(parts.values()) for row, parts in leaving.items()}
    most = max(totals.values()) or 1.0
    with style.styled():
        height = TOP_INCHES + BAR_INCHES * len(leaving) + BOTTOM_INCHES
        figure = style.new_figure(height, title)
        axes = style.axes_at(figure, LEFT_INCHES, TOP_INCHES, RIGHT_INCHES, BOTTOM_INCHES)
        axes.set(xlim=(0, most), ylim=(len(leaving) - 0.5, -0.5))
        axes.set_xlabel("bytes that leave the busiest node in a step")
        axes.xaxis.set_major_formatter(lambda value, _: style.num_bytes_text(value))
        axes.set_yticks(range(len(leaving)), list(leaving))
        inches = (style.WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES) / most
        for row, (name, parts) in enumerate(leaving.items()):
            _draw_row(axes, row, parts, inches)
            end = (totals[name] + 0.06 / inches, row)
            axes.text(*end, style.num_bytes_text(totals[name]), va="center_baseline")
    return figure


def _draw_row(axes: Axes, row: int, parts: Mapping[str, float], inches: float) -> None:
    start = 0.0
    for name, length in parts.items():
        colour = style.axis_colour(name)
        axes.barh(row, length, 0.8, start, color=colour, edgecolor=style.PAPER, linewidth=0.8)
        if length * inches >= CHARACTER_INCHES * (len(name) + 1):
            look = {"color": style.readable_on(colour), "fontsize": style.SMALL_POINTS}
            axes.text(start + length / 2, row, name, ha="center", va="center_baseline", **look)
        start += length
