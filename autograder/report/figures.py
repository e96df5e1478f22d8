"""The three drawings of the class page: points, how tasks ended, how long they took.

Each is as wide as a phone, and stands in the page as an image whose description says in words
what it shows.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from dataclasses import dataclass
from statistics import median

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from autograder.grade.verdicts import PASSED, VERDICTS
from byhand.figures.style import FAINT, INK, readable_on, styled

WIDTH_INCHES = 3.5  # 336 pixels of a page: a phone shows it unscaled
SHORTEST = 0.1  # seconds: what took less is drawn here
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
    heights = [counts[p] for p in range(max_points + 1)]
    bars = axes.bar(range(max_points + 1), heights, color=COLOURS[PASSED], width=0.8)
    axes.bar_label(bars, [str(count or "") for count in heights], fontsize=8)
    axes.plot(middle, 0, "^", color=COLOURS["crashed"], markersize=8, clip_on=False, zorder=3)
    axes.set(xlabel="points from tests", yticks=[], xlim=(-0.6, max_points + 0.6))
    axes.set_ylim(0, max(*heights, 1) * 1.18)
    axes.xaxis.get_major_locator().set_params(integer=True)
    spread = ", ".join(f"{p}: {counts[p]}" for p in sorted(counts, reverse=True))
    caption = f"At least half have {middle:g} or more of {max_points} points (triangle)"
    return Drawing(_address(figure), f"Submissions by points. {spread}.", caption)


def tasks_drawing(tasks: list[tuple[str, Counter[str]]]) -> Drawing:
    """How each task ended over the class: a bar for each, one part for each verdict."""
    figure, axes = _figure(0.45 * len(tasks) + 0.4, left=0.12, bottom=0.28)
    present = [v for v in VERDICTS if any(counts[v] for _, counts in tasks)]
    rows, starts = np.arange(len(tasks)), np.zeros(len(tasks))
    for verdict in present:
        numbers = np.array([counts[verdict] for _, counts in tasks])
        shares = numbers / [max(counts.total(), 1) for _, counts in tasks]
        look = {"color": COLOURS[verdict], "edgecolor": INK, "linewidth": 0.4, "height": 0.5}
        bars = axes.barh(rows, shares, left=starts, label=verdict, **look)
        labels = [str(n) if share > 0.05 else "" for n, share in zip(numbers, shares, strict=True)]
        text = readable_on(COLOURS[verdict])
        axes.bar_label(bars, labels, label_type="center", fontsize=8, color=text)
        starts += shares
    _titles(axes, [title for title, _ in tasks], above=0.36)
    axes.set(ylim=(len(tasks) - 0.4, -0.85), xlim=(0, 1), xticks=[])
    axes.spines["bottom"].set_visible(False)
    look = {"frameon": False, "handlelength": 1, "columnspacing": 0.9, "borderpad": 0}
    figure.legend(loc="lower left", ncols=min(4, len(present)), fontsize=8, **look)
    said = [", ".join(f"{counts[v]} {v}" for v in present if counts[v]) for _, counts in tasks]
    words = "; ".join(f"{title}: {one}" for (title, _), one in zip(tasks, said, strict=True))
    hardest, counts = min(tasks, key=lambda task: task[1][PASSED])
    caption = f"Hardest: {hardest}, passed by {counts[PASSED]} of {counts.total()}"
    return Drawing(_address(figure), f"How each task ended. {words}.", caption)


def seconds_drawing(tasks: list[tuple[str, list[float]]]) -> Drawing:
    """Seconds that each test took over the class: all (thin), the middle half (thick), the median.

    `tasks` are (title, seconds of each submission), none empty.
    """
    figure, axes = _figure(0.42 * len(tasks) + 0.8, left=0.12)
    for row, (_, times) in enumerate(tasks):
        marks = np.percentile(np.maximum(times, SHORTEST), [0, 25, 50, 75, 100])
        axes.hlines(row, marks[0], marks[4], color=COLOURS[PASSED], linewidth=1)
        axes.hlines(row, marks[1], marks[3], color=COLOURS[PASSED], linewidth=7)
        axes.plot(marks[2], row, "|", color="white", markersize=7, markeredgewidth=2)
        axes.plot(marks[4], row, "o", color=COLOURS[PASSED], markersize=3.5)
    _titles(axes, [title for title, _ in tasks], above=0.2)
    longest = {title: max(times) for title, times in tasks}
    slowest = max(longest, key=longest.get)
    axes.set(xscale="log", xlabel="seconds", ylim=(len(tasks) - 0.5, -0.75))
    axes.set_xlim(SHORTEST / 1.3, max(longest[slowest], 1) * 1.3)
    axes.xaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    said = [f"median {median(times):.1f} s, at most {max(times):.1f} s" for _, times in tasks]
    words = "; ".join(f"{title}: {one}" for (title, _), one in zip(tasks, said, strict=True))
    caption = f"Longest: {longest[slowest]:.1f} s, in {slowest} (thick: the middle half)"
    return Drawing(_address(figure), f"Seconds of each test. {words}.", caption)


def _figure(height: float, left: float = 0.18, bottom: float = 0.5) -> tuple[Figure, Axes]:
    """A figure of a phone's width; margins in inches."""
    with styled():
        figure = Figure((WIDTH_INCHES, height))
        wide, high = 1 - 2 * left / WIDTH_INCHES, 1 - (bottom + 0.08) / height
        axes = figure.add_axes((left / WIDTH_INCHES, bottom / height, wide, high))
        axes.spines["bottom"].set_color(FAINT)
    return figure, axes


def _titles(axes: Axes, titles: list[str], above: float) -> None:
    """A title above each row."""
    axes.set_yticks([])
    for row, title in enumerate(titles):
        text = title if len(title) <= 48 else title[:47].rstrip() + "…"
        place = {"va": "bottom", "transform": axes.get_yaxis_transform()}
        axes.text(0, row - above, text, fontsize=8.5, **place)


def _address(figure: Figure) -> str:
    """The figure as an SVG inside a data address; the same figure gives the same text."""
    buffer = io.BytesIO()
    with styled(), matplotlib.rc_context({"svg.hashsalt": "byhand", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
