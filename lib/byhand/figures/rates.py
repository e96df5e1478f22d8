"""What kinds of links can carry."""

from collections.abc import Sequence
from math import log10

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from byhand.figures import parts, style

TOP, BOTTOM = 0.5, 0.52  # inches
LINK_INCHES, NAME_INCHES, PLACE_INCHES = 0.25, 1.75, 2.3
PLACE_COLOURS = {
    "a GPU and its memory": "#1f4e79",
    "GPUs of a host or a rack": "#0072b2",
    "GPUs of one host": "#0072b2",
    "a GPU and its host": "#56b4e9",
    "hosts": "#e69f00",
    "here": "#d55e00",
}


def link_ladder(
    links: Sequence[tuple[str, str, float]], title: str, second: float | None = None
) -> Figure:
    """Each link's bytes per second as a dot by powers of ten: (name, between what, rate).

    second: the rate at which something takes one second; what it takes by each link is told. None:
    the fastest link's.
    """
    ordered = sorted(links, key=lambda link: -link[2])
    second = second or ordered[0][2]
    height = TOP + LINK_INCHES * len(ordered) + BOTTOM
    with style.plot(height, title, NAME_INCHES, TOP, PLACE_INCHES, BOTTOM) as (figure, axes):
        reach = (ordered[-1][2] / 2, 12 * ordered[0][2])
        axes.set(xscale="log", xlim=reach, ylim=(len(ordered) - 0.5, -0.5))
        axes.set_xlabel("bytes per second, by powers of ten")
        axes.set_yticks(range(len(ordered)), [link[0] for link in ordered])
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(LogLocator(10))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(_whole_thousands))
        small = {"fontsize": style.SMALL_POINTS, "annotation_clip": False}
        parts.at_right(axes, -1, "would take", 50, ha="right", **small)
        parts.at_right(axes, -1, "between", 62, **small)
        for number, (_, between, rate) in enumerate(ordered):
            axes.plot(rate, number, "o", markersize=8, color=PLACE_COLOURS.get(between, style.INK))
            beside = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(_rate_text(rate), (rate, number), **beside, **small)
            parts.at_right(axes, number, duration_text(second / rate), 50, ha="right", **small)
            parts.at_right(axes, number, between, 62, **small)
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
