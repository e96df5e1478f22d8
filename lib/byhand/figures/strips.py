"""Every value of several series as a dot: what a single number hides."""

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from byhand.figures import parts, style
from byhand.figures.costs import seconds_text

ROW_INCHES, LEFT, TOP, RIGHT, BOTTOM = 0.34, 1.85, 0.48, 0.9, 0.5  # inches


def strips(series: Mapping[str, Sequence[float]], title: str) -> Figure:
    """A row a name, a dot a value in seconds, by powers of ten; a bar and a number: the median."""
    height = TOP + ROW_INCHES * len(series) + BOTTOM
    with style.plot(height, title, LEFT, TOP, RIGHT, BOTTOM) as (figure, axes):
        axes.set(xscale="log", ylim=(len(series) - 0.5, -0.5), xlabel="one try")
        axes.set_yticks(range(len(series)), list(series))
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=12))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: seconds_text(seconds)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(color=style.FAINT, linewidth=0.5)
        axes.set_axisbelow(True)
        for row, values in enumerate(series.values()):
            middle = statistics.median(values)
            look = {"color": style.rank_colour(row), "markersize": 6, "alpha": 0.55}
            axes.plot(values, [row] * len(values), "o", markeredgewidth=0, **look)
            axes.plot([middle] * 2, [row - 0.36, row + 0.36], color=style.INK, linewidth=1.6)
            parts.at_right(axes, row, seconds_text(middle), 8)
    return figure
