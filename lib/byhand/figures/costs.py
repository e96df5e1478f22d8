"""Times over sizes, both by powers of ten: what was measured, what lines say, where they cross."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from byhand.figures import parts, style

HEIGHT, TOP, BOTTOM, LEFT = 3.4, 0.5, 0.55, 0.78  # inches
WIDE = 3e3  # most over least seconds: from there on powers of ten alone are named
ASIDE = 1.12  # points of one size stand beside each other, this factor apart
MANY = 12  # points: from there on they touch, and have no white edge
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f", "#56b4e9", "#e69f00")
MARKERS = ("o", "s", "^", "D")

Point = tuple[float, float, float, float]  # bytes, seconds, and between what


def costs(
    points: Mapping[str, Sequence[Point]],
    lines: Mapping[str, Callable[[float], float]],
    title: str,
    marks: Mapping[str, float] | None = None,
    reach: tuple[float, float] | None = None,
) -> Figure:
    """Points with their spread; for each name in `lines` the seconds of every size.

    A line and points of one name share a colour; points without a line are joined, and
    stand at their sizes, so that only their spreads are beside each other. marks: sizes to
    mark, with what happens there. reach: (least, most) bytes drawn.
    """
    names = dict.fromkeys([*lines, *points])
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    right = 0.35 + parts.CHARACTER_INCHES * max(map(len, names))
    sizes = [point[0] for some in points.values() for point in some]
    least, most = reach or (min(sizes), max(sizes))
    with style.plot(HEIGHT, title, LEFT, TOP, right, BOTTOM) as (figure, axes):
        _set_axes(axes, least, most)
        for name, line in lines.items():
            axes.plot(*_drawn(line, least, most), color=colours[name], linewidth=1.8, zorder=2)
        for number, (name, some) in enumerate(points.items()):
            look = {"color": colours[name], "zorder": 3 + number}
            aside = ASIDE ** (number - (len(points) - 1) / 2)
            _draw_points(axes, some, MARKERS[number % len(MARKERS)], look, aside, name in lines)
            if name not in lines:
                axes.plot(*list(zip(*some, strict=True))[:2], linewidth=1.2, **look)
        for text, size in (marks or {}).items():
            _mark(axes, text, size, least, most)
        ends = {name: line(most) for name, line in lines.items()}
        ends |= {name: some[-1][1] for name, some in points.items() if name not in lines}
        axes.autoscale_view()
        parts.name_ends(axes, ends, colours)
    return figure


def _drawn(line: Callable[[float], float], least: float, most: float) -> tuple[list, list]:
    places = [least * (most / least) ** (step / 200) for step in range(201)]
    return places, [line(place) for place in places]


def _set_axes(axes: Axes, least: float, most: float) -> None:
    axes.set(xscale="log", yscale="log", xlim=(least / 1.6, most * 1.6))
    axes.set_xlabel("bytes of the tensor")
    axes.grid(color=style.FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(LogLocator(10, numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: style.num_bytes_text(size)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: seconds_text(seconds)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(FuncFormatter(_between_powers(axes)))


def _between_powers(axes: Axes) -> Callable[[float, int], str]:
    """Names 2 and 5 times a power of ten, where the axis has room for them."""

    def text(seconds: float, _: int) -> str:
        least, most = axes.get_ylim()
        roomy = most / least < WIDE and f"{seconds:.0e}"[0] in "25"
        return seconds_text(seconds) if roomy else ""

    return text


def _draw_points(axes: Axes, some, marker: str, look: dict, aside: float, alone: bool) -> None:
    sizes, seconds, low, high = zip(*some, strict=True)
    moved = [size * aside for size in sizes]
    axes.vlines(moved, low, high, linewidth=1.2, **look)
    sizes = moved if alone else sizes
    edge = {"mec": style.PAPER, "mew": 1.0 if len(some) <= MANY else 0.0}  # no line cut in dashes
    axes.plot(sizes, seconds, marker, markersize=5 if len(some) <= MANY else 4, **edge, **look)


def _mark(axes: Axes, text: str, size: float, least: float, most: float) -> None:
    if not least <= size <= most:
        return
    axes.axvline(size, color=style.INK, linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
    leftwards = size > (least * most) ** 0.5
    place = {"xy": (size, 0.97), "xycoords": axes.get_xaxis_transform(), "va": "top"}
    place |= {"xytext": (-4 if leftwards else 4, 0), "textcoords": "offset points"}
    look = {"ha": "right" if leftwards else "left", "fontsize": style.SMALL_POINTS}
    axes.annotate(f"{text}: {style.num_bytes_text(size)}", **place, **look)


def seconds_text(seconds: float) -> str:
    """0.0015 -> '1.5 ms'."""
    return style.scaled(seconds, {1.0: "s", 1e-3: "ms", 1e-6: "µs", 1e-9: "ns"})
