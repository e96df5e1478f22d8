"""What lecture 17 draws: all layouts as a cloud, bytes in bars, published rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from byhand.figures import pen, style
from byhand.figures.bars import Line, stacked
from byhand.planner.lab import missed
from byhand.planner.search import Found
from byhand.planner.step import Step
from byhand.words import counted

GIB = 2**30
DAY = 86400
COLOURS = {
    "computes": style.COMPUTE,
    "recomputes": "#f2d49b",
    "tp, cp, ep": style.AXIS_COLOURS["tp"],
    "pp": style.AXIS_COLOURS["pp"],
    "idles": style.PAPER,
    "gradients": style.AXIS_COLOURS["dp"],
}
PALE = {"fc": style.PAPER, "ec": "none", "pad": 1}  # behind a text
MOST_DAYS = 400  # what is slower is not drawn
KINDS = style.STATE_COLOURS | {
    "loss": "#56b4e9",
    "gathered": "#cc79a7",
    "buffers": style.FAINT,
}


def cloud(
    found: Found,
    title: str,
    other: tuple[str, Step] | None = None,
    *,
    num_steps: float,
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """A dot a layout: bytes of the fullest rank, days of num_steps steps; the fastest is named.

    other: one more step to be named, and how. marks: days to compare with, dashed, by name.
    """
    best, winner = found[0]
    limit, steps = winner.limit / GIB, {f"the fastest: {best.pp} stages": winner}
    steps |= dict([other]) if other else {}

    def at(step: Step) -> tuple[float, float]:
        return step.num_bytes / GIB, step.seconds * num_steps / DAY

    with style.plot(4.1, title) as (figure, axes):
        axes.set(yscale="log", xlim=(0, 1.02 * limit), xlabel="GiB of the fullest rank")
        axes.set_ylabel(f"days (logarithmic, up to {MOST_DAYS})")
        axes.grid(color=style.FAINT, linewidth=0.5)
        axes.set_axisbelow(True)
        look: dict[str, Any] = {"markersize": 3.2, "alpha": 0.5, "mew": 0, "rasterized": True}
        axes.plot(*np.array([at(step) for _, step in found]).T, "o", color=style.COMPUTE, **look)
        fastest = at(winner)[1]
        axes.set_ylim(fastest / 2.2, max(MOST_DAYS, 1.2 * fastest))
        for name, days in (marks or {}).items():
            axes.axhline(days, color=style.INK, linewidth=1.2, linestyle=(0, (3, 2)))
            told = f"{name}: {days:.0f} days"
            above: dict[str, Any] = {"xytext": (4, 3), "textcoords": "offset points"}
            axes.annotate(told, (0, days), fontsize=style.SMALL_POINTS, bbox=PALE, **above)
        named = sorted(steps.items(), key=lambda item: item[1].num_bytes)  # the leftmost above
        for number, (name, step) in enumerate(named):
            _name(axes, at(step), f"{at(step)[1]:.0f} days, {name}", number)
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 4, 8)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda days, _: f"{days:,.0f}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        figure.set_dpi(2 * style.SCREEN_DPI)
    return figure


def _name(axes: Axes, point: tuple[float, float], text: str, number: int) -> None:
    """A ring around a dot, and straight below it, on a line of its own, its name."""
    ring: dict[str, Any] = {"mfc": "none", "mec": style.INK, "mew": 1.8, "zorder": 5}
    axes.plot(*point, "o", markersize=8, **ring)
    look: dict[str, Any] = {
        "xytext": (point[0], 0.21 - 0.075 * number),
        "textcoords": ("data", "axes fraction"),
        "ha": "right" if point[0] > axes.get_xlim()[1] / 2 else "left",
        "weight": "bold",
        "bbox": PALE,
        "arrowprops": {"arrowstyle": "-", "color": style.INK, "lw": 0.8, "shrinkB": 5},
    }
    look["arrowprops"]["relpos"] = (float(look["ha"] == "right"), 1)
    axes.annotate(text, point, fontsize=style.SMALL_POINTS, **look)


def memory_bars(steps: Mapping[str, Step], title: str, room: float) -> Figure:
    """A bar a layout: bytes of its fullest rank by kind, and a step's seconds.

    room: GiB that a plan may have, dashed.
    """
    rows = {}
    for name, found in steps.items():
        bars = [("", held / GIB, KINDS[kind]) for kind, held in found.memory.items()]
        told = f"{found.num_bytes / GIB:,.0f} GiB, {found.seconds:.1f} s"
        rows[f"{name}: {told}"] = [Line(bars, "")]
    shown = [kind for kind in KINDS if any(found.memory[kind] > 0 for found in steps.values())]
    key = {kind: KINDS[kind] for kind in shown}
    unit = "GiB of the fullest rank (dashed: what a plan may have)"
    figure = stacked({"": rows}, title, unit, key)
    figure.axes[0].axvline(room, color=style.INK, linewidth=1.2, linestyle=(0, (3, 2)), zorder=2)
    return figure


def waterfall(adds: Mapping[str, float], totals: Mapping[str, str], title: str) -> Figure:
    """A row for each thing that adds days, from where the one above it ended.

    totals: after which rows a sum is told, and what it is called.
    """
    with style.plot(0.9 + 0.27 * len(adds), title) as (figure, axes):
        pen.rows(axes, adds)
        end = 0.0
        for row, (name, days) in enumerate(adds.items()):
            colour = style.COMMUNICATION if row else style.COMPUTE
            pen.box(axes, (end, row - 0.38), (days, 0.76), colour, width=0)
            end += days
            told = f"{days:.0f} days" if row == 0 else f"+{days:.0f}"
            if name in totals:
                told += f", so {end:.0f} {totals[name]}"
            pen.beside(axes, (end, row), told)
        axes.set(xlabel="days", xlim=(0, 1.32 * end))
    return figure


def ratio_dots(found: Mapping[str, Sequence[float]], title: str) -> Figure:
    """A row a software and GPU, a dot a published run: predicted over published seconds."""
    with style.plot(1.1 + 0.31 * len(found), title) as (figure, axes):
        pen.rows(axes, found)
        axes.axvspan(0.95, 1.05, color=style.tint(style.FAINT, 0.55), zorder=0)
        axes.axvline(1, color=style.INK, linewidth=1, zorder=1)
        for row, values in enumerate(found.values()):
            shifts = np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else [0.0]
            look: dict[str, Any] = {"markersize": 5.5, "alpha": 0.6, "mew": 0}
            axes.plot(values, row + np.array(shifts), "o", color=style.RANK_COLOURS[0], **look)
            told = f"{counted(len(values), 'run')}, {missed(values):.1%}"
            pen.at_right(axes, row, told, 6)
        axes.set(xlim=(0.78, 1.22), xlabel="seconds on paper over published (grey: within 5 %)")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.2f}"))
    return figure
