"""The three drawings of the class page: points, how tasks ended, how long they took.

Each is as wide as a phone, and stands in the page as an image whose description says in words
what it shows.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from dataclasses import dataclass
from statistics import median, quantiles

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from autograder.grade.verdicts import PASSED, VERDICTS
from byhand.figures.style import FAINT, INK, readable_on, styled

WIDTH_INCHES = 3.5  # 336 pixels of a page: a phone shows it unscaled
COLOURS = {
    "passed": "#0b5c8c",
    "failed": "#e69f00",
    "deadlock": "#f0e442",
    "timeout": "#cc79a7",
    "crashed": "#8a3b12",
    "resource": "#56b4e9",
    "tampered": "#1b2733",
    "infrastructure": "#c9d1d9",
}


@dataclass(frozen=True)
class Drawing:
    """An image for a page: its address holds the whole picture."""

    address: str
    description: str
    caption: str


def points_drawing(points: list[float], max_points: int, middle: float) -> Drawing:
    """How many submissions have how many points."""
    counts = Counter(round(point) for point in points)
    figure, axes = _figure(1.9)
    bars = axes.bar(range(max_points + 1), [counts[p] for p in range(max_points + 1)],
                    color=COLOURS[PASSED], width=0.8)  # fmt: skip
    axes.bar_label(bars, [str(counts[p] or "") for p in range(max_points + 1)], fontsize=8)
    axes.plot(middle, 0, "^", color=COLOURS["crashed"], markersize=8, clip_on=False, zorder=3)
    axes.set(xlabel="points from tests", xlim=(-0.6, max_points + 0.6), yticks=[],
             ylim=(0, max(counts.values(), default=1) * 1.18))  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True)
    spread = ", ".join(f"{p}: {counts[p]}" for p in sorted(counts, reverse=True))
    return Drawing(_address(figure), f"Submissions by points. {spread}.",
                   f"At least half have {middle:g} or more of {max_points} points"
                   " (triangle)")  # fmt: skip


def tasks_drawing(tasks: list[tuple[str, Counter[str]]]) -> Drawing:
    """How each task ended over the class: a bar for each, one part for each verdict."""
    figure, axes = _figure(0.45 * len(tasks) + 0.4, left=0.12, bottom=0.28)
    present = [v for v in VERDICTS if any(counts[v] for _, counts in tasks)]
    for row, (title, counts) in enumerate(tasks):
        _stacked_bar(axes, row, counts, present)
        axes.text(0, row - 0.36, _short(title, 48), fontsize=8.5, va="bottom")
    axes.set(ylim=(len(tasks) - 0.4, -0.85), xticks=[], yticks=[])
    axes.spines["bottom"].set_visible(False)
    handles = [matplotlib.patches.Patch(facecolor=COLOURS[v], edgecolor=INK, linewidth=0.4, label=v)
               for v in present]  # fmt: skip
    figure.legend(handles=handles, loc="lower left", ncols=min(4, len(present)), fontsize=8,
                  frameon=False, handlelength=1, columnspacing=0.9, borderpad=0)  # fmt: skip
    said = "; ".join(f"{title}: " + ", ".join(f"{counts[v]} {v}" for v in present if counts[v])
                     for title, counts in tasks)  # fmt: skip
    hardest, counts = min(tasks, key=lambda task: task[1][PASSED])
    return Drawing(
        _address(figure),
        f"How each task ended. {said}.",
        f"Hardest: {hardest}, passed by {counts[PASSED]} of {counts.total()}",
    )


def seconds_drawing(tasks: list[tuple[str, list[float]]]) -> Drawing:
    """Seconds that each test took over the class: all (thin), the middle half (thick), the median.

    `tasks` are (title, seconds of each submission), none empty.
    """
    figure, axes = _figure(0.42 * len(tasks) + 0.8, left=0.12)
    for row, (title, times) in enumerate(tasks):
        times = sorted(max(seconds, 0.01) for seconds in times)
        low, middle, high = _quartiles(times)
        axes.hlines(row, times[0], times[-1], color=COLOURS[PASSED], linewidth=1)
        axes.hlines(row, low, high, color=COLOURS[PASSED], linewidth=7)
        axes.plot(middle, row, "|", color="white", markersize=7, markeredgewidth=2)
        axes.plot(times[-1], row, "o", color=COLOURS[PASSED], markersize=3.5)
        axes.text(0.0, row - 0.2, _short(title, 48), fontsize=8.5, va="bottom",
                  transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set(xscale="log", xlabel="seconds", ylim=(len(tasks) - 0.5, -0.75), yticks=[])
    _readable_ticks(axes, [seconds for _, times in tasks for seconds in times])
    slowest = {title: max(times) for title, times in tasks}
    title = max(slowest, key=slowest.get)
    said = "; ".join(f"{name}: median {median(times):.1f} s, at most {max(times):.1f} s"
                     for name, times in tasks)  # fmt: skip
    return Drawing(_address(figure), f"Seconds of each test. {said}.",
                   f"Longest: {slowest[title]:.1f} s, in {title}"
                   " (thick: the middle half of the class)")  # fmt: skip


def _readable_ticks(axes: Axes, times: list[float]) -> None:
    """Ticks at 1, 2 and 5 times powers of ten: all of a narrow range, the powers of a wide one."""
    low, high = max(min(times), 0.01) / 1.3, max(*times, 0.02) * 1.3
    steps = (1,) if high / low > 200 else (1, 2, 5)
    ticks = [step * 10.0**power for power in range(-2, 5) for step in steps]
    axes.set(xlim=(low, high), xticks=[tick for tick in ticks if low <= tick <= high])
    axes.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())


def _quartiles(times: list[float]) -> list[float]:
    return quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3


def _figure(height: float, left: float = 0.18, bottom: float = 0.5) -> tuple[Figure, Axes]:
    """A figure of a phone's width; margins in inches."""
    with styled():
        figure = Figure((WIDTH_INCHES, height))
        wide, high = 1 - 2 * left / WIDTH_INCHES, 1 - (bottom + 0.08) / height
        box = (left / WIDTH_INCHES, bottom / height, wide, high)
        axes = figure.add_axes(box)
        axes.spines["bottom"].set_color(FAINT)
    return figure, axes


def _stacked_bar(axes: Axes, row: int, counts: Counter[str], present: list[str]) -> None:
    start, total = 0.0, max(counts.total(), 1)
    for verdict in present:
        share = counts[verdict] / total
        axes.barh(row, share, left=start, height=0.5, color=COLOURS[verdict], edgecolor=INK,
                  linewidth=0.4)  # fmt: skip
        if share > 0.05:
            axes.text(start + share / 2, row, str(counts[verdict]), fontsize=8, ha="center",
                      va="center", color=readable_on(COLOURS[verdict]))  # fmt: skip
        start += share
    axes.set_xlim(0, 1)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _address(figure: Figure) -> str:
    """The figure as an SVG inside a data address; the same figure gives the same text."""
    buffer = io.BytesIO()
    with styled(), matplotlib.rc_context({"svg.hashsalt": "byhand", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
