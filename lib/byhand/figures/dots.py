"""Dots by powers of ten, a row a name: every value of some series."""

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from byhand.figures import pen, style


def every_value(series: Mapping[str, Sequence[float]], title: str) -> style.CourseFigure:
    """A row a name, a dot a value in seconds, by powers of ten; a bar and a number: the median."""
    with style.plot(1.0 + 0.34 * len(series), title) as (figure, axes):
        pen.rows(axes, series)
        axes.set(xscale="log", xlabel="one try")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=12))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda one, _: style.seconds_text(one)))
        axes.grid(color=style.FAINT, linewidth=0.5)
        axes.set_axisbelow(True)
        for row, values in enumerate(series.values()):
            middle = statistics.median(values)
            look = {"color": style.rank_colour(row), "markersize": 6, "alpha": 0.55}
            axes.plot(values, [row] * len(values), "o", markeredgewidth=0, **look)
            axes.plot([middle] * 2, [row - 0.36, row + 0.36], color=style.INK, linewidth=1.6)
            pen.at_right(axes, row, style.seconds_text(middle), 8)
    return figure
