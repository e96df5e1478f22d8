"""Lines over one axis, each named where it ends: loss curves, and what a setting does to a time."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from byhand.figures import parts, style

HEIGHT, LEFT, TOP, BOTTOM = 2.9, 0.72, 0.5, 0.55  # inches
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f")  # not a rank's: a setting's
WIDTHS = (5.0, 2.4, 1.2)  # lines that lie over each other can all be seen

Lines = Mapping[str, Sequence[float]]


def curves(
    lines: Lines,
    xlabel: str,
    ylabel: str,
    title: str,
    x: Sequence[float] | None = None,
    spread: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    from_zero: bool = False,
    points: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    widths: Sequence[float] = WIDTHS,
) -> Figure:
    """A line for each name in `lines`, over `x` (None: 1, 2, ...) or its start; the first thickest.

    spread: for some of the names, (least, most) at each point, drawn as a band.
    from_zero: whether y starts at 0, so that heights can be compared.
    widths: of the lines in points, the last one for all that follow: (2,) where none hides another.
    points: (x, y) that were measured, for some of the names: circles, and their lines have no dots.
    """
    right = 0.35 + parts.CHARACTER_INCHES * max(map(len, lines))
    with style.plot(HEIGHT, title, LEFT, TOP, right, BOTTOM) as (figure, axes):
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xscale("log" if log_x else "linear")
        axes.set_yscale("log" if log_y else "linear")
        if x is None:
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
        for number, (name, values) in enumerate(lines.items()):
            places = range(1, len(values) + 1) if x is None else x[: len(values)]
            look = {"color": COLOURS[number % len(COLOURS)], "solid_capstyle": "round"}
            marker = "o" if len(values) <= 12 and not points else ""
            width = widths[min(number, len(widths) - 1)]
            axes.plot(places, values, marker=marker, markersize=width + 2, linewidth=width, **look)
            _draw_measured(axes, places, name, look["color"], points or {}, spread or {})
        _name_lines(axes, lines, from_zero)
        if log_x and x is not None:
            axes.set_xticks(x, [f"{place:g}" for place in x], minor=False)
    return figure


def _draw_measured(axes: Axes, places, name: str, colour: str, points, spread) -> None:
    if name in points:
        ring = {"mfc": style.PAPER, "mec": colour, "mew": 1.5, "zorder": 3}
        axes.plot(*zip(*points[name], strict=True), "o", markersize=6, **ring)
    if name in spread:
        least, most = zip(*spread[name], strict=True)
        axes.fill_between(places, least, most, color=colour, alpha=0.18, linewidth=0)


def _name_lines(axes: Axes, lines: Lines, from_zero: bool) -> None:
    """Each line's name at the height where it ends, moved down where two would touch."""
    axes.margins(x=0.02)
    axes.autoscale_view()
    if from_zero:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        least, most = sorted(axis.get_view_interval())
        axis.set_ticks([tick for tick in axis.get_majorticklocs() if least <= tick <= most])
        axis.set_minor_formatter(NullFormatter())
    ends = {name: values[-1] for name, values in lines.items()}
    parts.name_ends(axes, ends, dict(zip(lines, cycle(COLOURS), strict=False)))
