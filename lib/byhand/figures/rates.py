"""What each rank sends, over time; and what kinds of links can carry."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from byhand.figures import style

ROW_INCHES, LEFT, TOP, RIGHT, BOTTOM = 0.62, 0.72, 0.5, 0.95, 0.52  # inches
BAR_INCHES, NAME_INCHES, PLACE_INCHES = 0.27, 1.95, 2.05
PLACE_COLOURS = {
    "a GPU and its memory": "#1f4e79",
    "GPUs of one node": "#0072b2",
    "a GPU and its host": "#56b4e9",
    "nodes": "#e69f00",
    "here": "#d55e00",
}


def bandwidth_over_time(
    by_rank: Sequence[Sequence[float]],
    interval_seconds: float,
    title: str,
    limit: float | None = None,
) -> Figure:
    """One row a rank: bytes per second in each interval, all rows to one scale.

    limit: a rate drawn as a line, such as the link's.
    """
    most = max([limit or 0.0, *(max(rates, default=0.0) for rates in by_rank)]) or 1.0
    num_intervals = max(len(rates) for rates in by_rank)
    edges = [1e3 * interval_seconds * number for number in range(num_intervals + 1)]
    height = TOP + ROW_INCHES * len(by_rank) + BOTTOM
    with style.plot(height, title, LEFT, TOP, RIGHT, BOTTOM) as (figure, axes):
        axes.set(xlim=(0, edges[-1]), ylim=(len(by_rank), 0), xlabel="milliseconds")
        axes.set_yticks(
            [rank + 0.85 for rank in range(len(by_rank))],
            [f"rank {rank}" for rank in range(len(by_rank))],
        )
        for rank, rates in enumerate(by_rank):
            floor = rank + 0.95
            heights = [floor - 0.88 * rate / most for rate in rates]
            look = {"color": style.rank_colour(rank), "linewidth": 0}
            axes.stairs(heights, edges, baseline=floor, fill=True, **look)
            axes.axhline(floor, color=style.FAINT, linewidth=0.8)
            if limit:
                top = floor - 0.88 * limit / most
                axes.axhline(top, color=style.INK, linewidth=0.8, linestyle=(0, (3, 3)))
        named = limit or most
        place = {"xy": (1, 0.95 - 0.88 * named / most), "xycoords": axes.get_yaxis_transform()}
        text = f"{named / 1e6:.3g} MB/s"
        axes.annotate(text, xytext=(6, 0), textcoords="offset points", va="center", **place)
    return figure


def link_ladder(links: Sequence[tuple[str, str, float]], title: str) -> Figure:
    """Each link's bytes per second as a bar by powers of ten: (name, between what, rate)."""
    ordered = sorted(links, key=lambda link: -link[2])
    height = TOP + BAR_INCHES * len(ordered) + BOTTOM
    least = min(link[2] for link in ordered) / 30
    with style.plot(height, title, NAME_INCHES, TOP, PLACE_INCHES, BOTTOM) as (figure, axes):
        axes.set(xscale="log", xlim=(least, 1.3 * ordered[0][2]), ylim=(len(ordered), 0))
        axes.set_xlabel("bytes per second, one direction")
        axes.set_yticks([i + 0.5 for i in range(len(ordered))], [link[0] for link in ordered])
        axes.xaxis.set_major_locator(LogLocator(100))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: _rate_text(rate)))
        for number, (_, between, rate) in enumerate(ordered):
            colour = PLACE_COLOURS.get(between, style.COMMUNICATION)
            axes.barh(number + 0.5, rate - least, left=least, height=0.78, color=colour)
            place = {"xy": (1, number + 0.5), "xycoords": axes.get_yaxis_transform()}
            text = between if between == "here" else f"between {between}"
            look = {"va": "center", "color": style.INK, "fontsize": style.SMALL_POINTS}
            if number == 0 or ordered[number - 1][1] != between:
                axes.annotate(text, xytext=(6, 0), textcoords="offset points", **place, **look)
            inside = {"xy": (rate, number + 0.5), "xytext": (-4, 0), "ha": "right", "va": "center"}
            inside |= {"textcoords": "offset points", "fontsize": style.SMALL_POINTS}
            axes.annotate(_rate_text(rate), color=style.readable_on(colour), **inside)
    return figure


def _rate_text(rate: float) -> str:
    return style.scaled(rate, {1e12: "TB/s", 1e9: "GB/s", 1e6: "MB/s", 1e3: "KB/s", 1.0: "B/s"})
