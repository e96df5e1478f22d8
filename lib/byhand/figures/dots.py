"""Dots by powers of ten, a row a name: what kinds of links carry; every value of some series."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import log10

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from byhand.figures import pen, style

BETWEEN_COLOURS = {
    "a GPU and its memory": "#1f4e79",
    "GPUs of a host or a rack": "#0072b2",
    "GPUs of one host": "#0072b2",
    "a GPU and its host": "#56b4e9",
    "hosts": "#e69f00",
    "here": "#d55e00",
}


@contextmanager
def _rows(names: Iterable[str], title: str, inches: float, **look) -> Iterator[tuple[Figure, Axes]]:
    names = list(names)
    with style.plot(1.0 + inches * len(names), title) as (figure, axes):
        pen.rows(axes, names)
        axes.set(xscale="log", **look)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_minor_formatter(NullFormatter())
        yield figure, axes


def link_ladder(
    links: Sequence[tuple[str, str, float]], title: str, second: float | None = None
) -> Figure:
    """Each link's bytes per second as a dot by powers of ten: (name, between what, rate).

    second: the rate at which something takes one second; what it takes by each link is told. None:
    the fastest link's.
    """
    links = sorted(links, key=lambda link: -link[2])
    second = second or links[0][2]
    look = {"xlim": (links[-1][2] / 2, 12 * links[0][2])}
    look["xlabel"] = "bytes per second, by powers of ten"
    with _rows((link[0] for link in links), title, 0.25, **look) as (figure, axes):
        axes.xaxis.set_major_locator(LogLocator(10))
        axes.xaxis.set_minor_locator(LogLocator(10, subs=()))
        axes.xaxis.set_major_formatter(FuncFormatter(_whole_thousands))
        rows = [(duration_text(second / rate), between) for _, between, rate in links]
        for number, (lasts, between) in enumerate([("would take", "between"), *rows], -1):
            pen.at_right(axes, number, lasts, 50, ha="right")
            pen.at_right(axes, number, between, 62)
        for number, (_, between, rate) in enumerate(links):
            axes.plot(
                rate, number, "o", markersize=8, color=BETWEEN_COLOURS.get(between, style.INK)
            )
            pen.beside(axes, (rate, number), _rate_text(rate), 8)
    return figure


def duration_text(seconds: float) -> str:
    """2680 -> '45 min'."""
    steps = ((86400, 86400, "days"), (3600, 3600, "h"), (100, 60, "min"), (0, 1, "s"))
    factor, unit = next(step[1:] for step in steps if seconds >= step[0])
    return f"{seconds / factor:.2g} {unit}"


def _whole_thousands(rate: float, _: int) -> str:
    return _rate_text(rate) if round(log10(rate)) % 3 == 0 else ""


def _rate_text(rate: float) -> str:
    return style.scaled(rate, {1e12: "TB/s", 1e9: "GB/s", 1e6: "MB/s", 1e3: "KB/s", 1.0: "B/s"})


def every_value(series: Mapping[str, Sequence[float]], title: str) -> Figure:
    """A row a name, a dot a value in seconds, by powers of ten; a bar and a number: the median."""
    with _rows(series, title, 0.34, xlabel="one try") as (figure, axes):
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
