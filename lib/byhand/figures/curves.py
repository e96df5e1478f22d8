"""Lines over one axis, each named where it ends: losses, times, and points that were measured."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from byhand.figures import pen, style
from byhand.words import num_bytes_text

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f", "#56b4e9", "#e69f00")
WIDTHS = (5.0, 2.4, 1.2)  # lines that lie over each other can all be seen
WIDE = 3e3  # most over least seconds: from there on powers of ten alone are named
ASIDE = 1.12  # points of one size stand beside each other, this factor apart
MANY = 12  # points: from there on they touch, and have no white edge
MARKERS = ("o", "s", "^", "D")

Lines = Mapping[str, Sequence[float]]
Point = tuple[float, float, float, float]  # bytes, seconds, and between what


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
) -> style.CourseFigure:
    """A line for each name in `lines`, over `x` (None: 1, 2, ...) or its start; the first thickest.

    spread: for some of the names, (least, most) at each point, drawn as a band.
    from_zero: whether y starts at 0, so that heights can be compared.
    widths: of the lines in points, the last one for all that follow: (2,) where none hides another.
    points: (x, y) that were measured, for some of the names: circles, and their lines have no dots.
    """
    with style.plot(2.9, title) as (figure, axes):
        scales = {"xscale": "log" if log_x else "linear", "yscale": "log" if log_y else "linear"}
        axes.set(xlabel=xlabel, ylabel=ylabel, **scales)
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
        colours = dict(zip(lines, cycle(COLOURS[:5]), strict=False))
        for number, (name, values) in enumerate(lines.items()):
            over = range(1, len(values) + 1) if x is None else x[: len(values)]
            look = {"color": colours[name], "solid_capstyle": "round"}
            marker = "o" if len(values) <= 12 and not points else ""
            width = widths[min(number, len(widths) - 1)]
            axes.plot(over, values, marker=marker, markersize=width + 2, linewidth=width, **look)
            if spread and name in spread:
                band = {"color": colours[name], "alpha": 0.18, "linewidth": 0}
                axes.fill_between(over, *zip(*spread[name], strict=True), **band)
        for name, found in (points or {}).items():
            _draw_circles(axes, found, colours[name])
        _set_ticks(axes, x, from_zero)
        pen.name_ends(axes, {name: values[-1] for name, values in lines.items()}, colours)
    return figure


def _draw_circles(axes: Axes, found: Sequence[tuple[float, float]], colour: str) -> None:
    x, y = zip(*found, strict=True)
    axes.plot(x, y, "o", markersize=6, mfc=style.PAPER, mec=colour, mew=1.5, zorder=3)


def _set_ticks(axes: Axes, x: Sequence[float] | None, from_zero: bool) -> None:
    """Those in view; on a logarithmic axis, those of a short `x`."""
    if x is None:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    axes.margins(x=0.02)
    axes.autoscale_view()
    if from_zero:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        least, most = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_majorticklocs() if least <= tick <= most]
        if axis.get_scale() == "log" and min(ticks, default=0) >= 0.01:
            axis.set_ticks(ticks, [f"{tick:,.10g}" for tick in ticks])
        else:
            axis.set_ticks(ticks)
        axis.set_minor_formatter(NullFormatter())
    if axes.get_xscale() == "log" and x is not None and len(x) <= MANY:
        axes.set_xticks(x, [f"{one:g}" for one in x], minor=False)
        axes.set_xticks([], minor=True)


def seconds_by_size(
    points: Mapping[str, Sequence[Point]],
    lines: Mapping[str, Callable[[float], float]],
    title: str,
    marks: Mapping[str, float] | None = None,
    reach: tuple[float, float] | None = None,
) -> style.CourseFigure:
    """Times over sizes, by powers of ten: points with their spread; lines, seconds of every size.

    A line and points of one name share a colour; points without a line are joined, and
    stand at their sizes, so that only their spreads are beside each other. marks: sizes to
    mark, with what happens there. reach: (least, most) bytes drawn.
    """
    colours = dict(zip(dict.fromkeys([*lines, *points]), cycle(COLOURS), strict=False))
    sizes = [point[0] for some in points.values() for point in some]
    least, most = reach or (min(sizes), max(sizes))
    with style.plot(3.4, title) as (figure, axes):
        _set_axes(axes, least, most)
        drawn = [least * (most / least) ** (step / 200) for step in range(201)]
        for name, line in lines.items():
            axes.plot(drawn, [line(size) for size in drawn], color=colours[name], lw=1.8, zorder=2)
        for number, (name, some) in enumerate(points.items()):
            look = {"color": colours[name], "zorder": 3 + number}
            aside = ASIDE ** (number - (len(points) - 1) / 2)
            _draw_points(axes, some, MARKERS[number % len(MARKERS)], look, aside, name in lines)
        for text, size in (marks or {}).items():
            if least <= size <= most:
                _mark(axes, f"{text}: {num_bytes_text(size)}", size)
        ends = {name: some[-1][1] for name, some in points.items() if name not in lines}
        axes.autoscale_view()
        pen.name_ends(axes, {name: line(most) for name, line in lines.items()} | ends, colours)
    return figure


def _set_axes(axes: Axes, least: float, most: float) -> None:
    axes.set(xscale="log", yscale="log", xlim=(least / 1.6, most * 1.6))
    axes.set_xlabel("bytes of the tensor")
    axes.grid(color=style.FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(LogLocator(10, numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: num_bytes_text(size)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: style.seconds_text(seconds)))
    axes.xaxis.set_minor_formatter(NullFormatter())

    def between(seconds: float, _: int) -> str:
        """Names 2 and 5 times a power of ten, where the axis has room for them."""
        low, high = axes.get_ylim()
        roomy = high / low < WIDE and f"{seconds:.0e}"[0] in "25"
        return style.seconds_text(seconds) if roomy else ""

    axes.yaxis.set_minor_formatter(FuncFormatter(between))


def _draw_points(
    axes: Axes, some: Sequence[Point], marker: str, look: dict, aside: float, alone: bool
) -> None:
    sizes, seconds, low, high = zip(*some, strict=True)
    moved = [size * aside for size in sizes]
    axes.vlines(moved, low, high, linewidth=1.2, **look)
    edge = {"mec": style.PAPER, "mew": 1.0 if len(some) <= MANY else 0.0}  # no line cut in dashes
    look = {"markersize": 5 if len(some) <= MANY else 4, "lw": 1.2, **edge, **look}
    axes.plot(moved if alone else sizes, seconds, marker, ls="" if alone else "-", **look)


def _mark(axes: Axes, text: str, size: float) -> None:
    """A line from top to bottom, and its name on the side where there is more room."""
    axes.axvline(size, color=style.INK, linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
    least, most = axes.get_xlim()
    points, side = (-4, "right") if size > (least * most) ** 0.5 else (4, "left")
    look = {"xycoords": axes.get_xaxis_transform(), "va": "top", "ha": side}
    pen.beside(axes, (size, 0.97), text, points, **look)
