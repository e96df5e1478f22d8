"""What lecture 17 runs and draws: the cloud of layouts, a step in bars, published rows scored.

Nothing here starts a rank: a planner is arithmetic.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.figures import pen, style
from byhand.figures.bars import Line, stacked
from byhand.planner.__main__ import main
from byhand.planner.machines import MACHINES
from byhand.planner.published import Published, published, scored
from byhand.planner.search import ORDERS, OUTER_DP, Found, every
from byhand.planner.software import SOFTWARE
from byhand.planner.step import Step, ask, step

GIB = 2**30
GROUPS = {  # what a picture shows of a step: the parts, and their colour
    "computes": (("products", "attention", "small", "head", "optimizer", "other"), style.COMPUTE),
    "recomputes": (("again",), "#f2d49b"),
    "tp, cp, ep": (("tp", "cp", "ep"), style.AXIS_COLOURS["tp"]),
    "pp": (("pp",), style.AXIS_COLOURS["pp"]),
    "idles": (("idle",), style.PAPER),
    "gradients": (("gradients",), style.AXIS_COLOURS["dp"]),
}
KINDS = style.STATE_COLOURS | {
    "activations": "#009e73",
    "loss": "#56b4e9",
    "gathered": "#cc79a7",
    "buffers": style.FAINT,
}
MESSAGES = "tp", "cp", "ep", "pp", "gradients"
NEIGHBOURS = {  # software, and another whose constants were fitted to other rows
    "megatron-2021": "megatron-2022",
    "megatron-2022": "megatron-2021",
    "nemo": "megatron-bridge",
    "megatron-bridge": "nemo",
    "fsdp": "torchtitan",
    "torchtitan": "fsdp",
    "torchtitan-async": "torchtitan",
}


def short(layout: Layout) -> str:
    """A layout in few letters: v chunks, sp sequence parallelism; what is 1 or 0 is not said."""
    degrees = ("cp", layout.cp), ("ep", layout.ep), ("rows", layout.rows), ("v", layout.chunks)
    words = [f"{name} {getattr(layout, name)}" for name in ("dp", "tp", "pp")]
    words += [f"{name} {number}" for name, number in degrees if number > 1]
    words += [f"ZeRO {layout.zero}"] * bool(layout.zero) + ["sp"] * layout.sequence
    words += [layout.recompute] * (layout.recompute != "none")
    words += ["stages near"] * (layout.order == OUTER_DP)
    return " · ".join(words)


def tool(command: str, places: int = 1) -> str:
    """What `python -m byhand.planner` says to these words, its first places, wrapped."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        main(command.split())
    head, *blocks, flags = told.getvalue().strip().split("\n\n")
    lines = "\n".join([head, *blocks[:places], flags]).splitlines()
    look: dict[str, Any] = {
        "break_on_hyphens": False,
        "break_long_words": False,
        "subsequent_indent": "      ",
    }
    return "\n".join(textwrap.fill(line, 88, **look) for line in lines)


def grouped(found: Step) -> dict[str, float]:
    """Seconds of each of GROUPS: they add up to the step's."""
    return {name: sum(found.parts[part] for part in parts) for name, (parts, _) in GROUPS.items()}


def talking(found: Step) -> float:
    """The share of a step in which messages show."""
    return sum(found.parts[part] for part in MESSAGES) / found.seconds


# Published rows


def predicted(row: Published, software: str | None = None, between: float | None = None) -> float:
    """Seconds of that run on paper. software: another's constants. between: its cards' rate."""
    machine = MACHINES[row.machine]
    if between is not None:
        machine = replace(machine, between=between)
    found = step(
        row.model,
        row.layout,
        machine,
        row.num_sequences,
        precision=row.precision,
        software=software or row.software,
        compiled=row.compiled,
        reduce_dtype=row.reduce_dtype,
    )
    return found.seconds


def ratios() -> dict[str, list[float]]:
    """Predicted over published seconds of every scored row, by software and kind of GPU."""
    found: dict[str, list[float]] = {}
    order = list(NEIGHBOURS)
    for row in sorted(scored(), key=lambda row: (order.index(row.software), row.machine)):
        kind = MACHINES[row.machine].kind.upper()
        name = f"{row.software}, {kind}, {row.precision.upper()}"
        found.setdefault(name, []).append(predicted(row) / row.seconds)
    return found


def missed(values: Sequence[float]) -> float:
    """The mean error of ratios."""
    return statistics.mean(abs(ratio - 1) for ratio in values)


def unseen() -> dict[str, tuple[int, float, float]]:
    """By software: rows, mean error with its own constants, and with its neighbour's.

    Rows whose kind of GPU or precision the neighbour does not know are left out of both.
    """
    found = {}
    for name, other in NEIGHBOURS.items():
        known = SOFTWARE[other].products
        rows = [
            row
            for row in scored()
            if row.software == name and (MACHINES[row.machine].kind, row.precision) in known
        ]
        own, theirs = (
            missed([predicted(row, by) / row.seconds for row in rows]) for by in (name, other)
        )
        found[name] = len(rows), own, theirs
    return found


def farthest(most: int) -> list[tuple[str, float]]:
    """The rows that the planner misses by most: (name, error)."""
    found = [(row.name, predicted(row) / row.seconds - 1) for row in scored()]
    return sorted(found, key=lambda pair: -abs(pair[1]))[:most]


def left_out() -> dict[str, int]:
    """Why rows are not scored, and how many."""
    reasons = [row.left_out for row in published() if row.left_out]
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def run_of(name: str) -> Published:
    """The published run of that name."""
    return next(row for row in published() if row.name == name)


# Search


def num_layouts(
    model: Model, machine: str, num_ranks: int, num_sequences: int, software: str
) -> int:
    """Layouts that divide, whether they fit or not."""
    case = ask(model, [Layout()], machine, num_sequences, software=software)
    return sum(len(every(case, num_ranks, order, {})) for order in ORDERS)


def regret(found: Found, rule: Callable[[Layout], bool]) -> float | None:
    """How much slower than the best the best is that obeys a rule; None where none does."""
    obeys = next((each.seconds for layout, each in found if rule(layout)), None)
    return None if obeys is None else obeys / found[0][1].seconds - 1


def at_least(found: Step) -> float:
    """Seconds of computing and idling alone: with all messages free, no step is faster."""
    parts = ("products", "attention", "small", "again", "head", "idle")
    return sum(found.parts[part] for part in parts)


# Pictures


def cloud(found: Found, title: str) -> Figure:
    """A dot a layout: bytes of the fullest rank, seconds of a step; the fastest is named."""
    points = np.array([(each.num_bytes / GIB, each.seconds) for _, each in found])
    best, winner = found[0]
    name = f"{winner.seconds:.1f} s: {short(best)}"
    limit = winner.limit / GIB
    middle = float(np.median(points[:, 1]))
    with style.plot(3.7, title) as (figure, axes):
        axes.set(yscale="log", xlim=(0, 1.02 * limit), xlabel="GiB of the fullest rank")
        axes.set_ylabel("seconds of a step, by powers of ten")
        axes.grid(color=style.FAINT, linewidth=0.5)
        axes.set_axisbelow(True)
        look: dict[str, Any] = {"markersize": 2.2, "alpha": 0.16, "mew": 0, "rasterized": True}
        axes.plot(*points.T, "o", color=style.COMPUTE, **look)
        axes.axhline(middle, color=style.INK, linewidth=1, linestyle=(0, (3, 3)))
        paper = {"fc": style.PAPER, "ec": "none", "pad": 1.5}
        pen.beside(axes, (0, middle), f"half of them: over {middle:.0f} s", 4, bbox=paper)
        _name(axes, (winner.num_bytes / GIB, winner.seconds), name)
        axes.yaxis.set_major_locator(LogLocator(10))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:,.0f}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(bottom=winner.seconds / 2.6)
        figure.set_dpi(2 * style.SCREEN_DPI)
    return figure


def _name(axes: Axes, point: tuple[float, float], text: str) -> None:
    """A ring around the winner, and its name on two lines below, left of the edge."""
    words = text.split(" · ")
    half = (len(words) + 1) // 2
    told = " · ".join(words[:half]) + "\n" + " · ".join(words[half:])
    ring: dict[str, Any] = {"mfc": "#e69f00", "mec": style.INK, "mew": 1.2, "zorder": 5}
    axes.plot(*point, "o", markersize=8, **ring)
    look: dict[str, Any] = {
        "xytext": (-6, -9),
        "textcoords": "offset points",
        "ha": "right",
        "va": "top",
    }
    axes.annotate(told, point, fontsize=style.SMALL_POINTS, weight="bold", **look)


def step_bars(
    steps: Mapping[str, Step], title: str, ran: Mapping[str, float] | None = None
) -> Figure:
    """A bar a layout: a step's seconds by GROUPS. ran: published seconds, for some; grey."""
    rows, known = {}, ran or {}
    for name, found in steps.items():
        bars = [("", seconds, GROUPS[group][1]) for group, seconds in grouped(found).items()]
        rows[name] = [Line(bars, f"{found.seconds:.1f} s, MFU {found.mfu:.0%}")]
        if name in known:
            grey = [("", known[name], style.COMMUNICATION)]
            rows[name].append(Line(grey, f"{known[name]:.1f} s ran"))
    key = {group: colour for group, (_, colour) in GROUPS.items()}
    return stacked({"": rows}, title, "seconds of a step", key)


def memory_bars(steps: Mapping[str, Step], title: str, most: float | None = None) -> Figure:
    """A bar a layout: bytes of its fullest rank by kind, cut off at `most` GiB; dashed: a GPU."""
    rows = {
        name: [
            Line(
                [("", num_bytes / GIB, KINDS[kind]) for kind, num_bytes in found.memory.items()],
                f"{found.num_bytes / GIB:,.0f} GiB",
            )
        ]
        for name, found in steps.items()
    }
    shown = [kind for kind in KINDS if any(found.memory[kind] > 0 for found in steps.values())]
    key = {kind: KINDS[kind] for kind in shown}
    figure = stacked(
        {"": rows}, title, "GiB of the fullest rank (dashed: a GPU's memory)", key, most
    )
    limit = next(iter(steps.values())).limit / GIB
    figure.axes[0].axvline(limit, color=style.INK, linewidth=1.2, linestyle=(0, (3, 2)), zorder=2)
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
            told = f"{len(values)} runs, {missed(values):.1%}"
            pen.at_right(axes, row, told, 6)
        axes.set(xlim=(0.78, 1.22), xlabel="seconds predicted over published (grey: within 5 %)")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.2f}"))
    return figure
