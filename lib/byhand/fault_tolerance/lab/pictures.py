"""The pictures of lecture 16: a death and what follows, saves that were cut off, boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from byhand.checkpoint import Box
from byhand.checkpoint.boxes import overlap
from byhand.fault_tolerance.interval import best, goodput, young
from byhand.fault_tolerance.lab.dying import PARTS, Death
from byhand.fault_tolerance.lab.saving import Moment
from byhand.figures import pen, style
from byhand.figures.cells import Cell, cells
from byhand.figures.curves import COLOURS
from byhand.figures.lanes import Bar, Panel, over_time

DEAD, AGAIN, LOADING = "#b2182b", "#e69f00", "#56b4e9"
FOUND = {"the old checkpoint": "#7fb0d6", "the new one": "#1b7a4d", "nothing": DEAD}


def loss_after_death(death: Death, whole: Sequence[float], title: str) -> Figure:
    """The losses of a run that nobody killed, and over them those before the death and after."""
    before, after = death.losses(0), death.losses(1)
    with style.plot(2.9, title) as (figure, axes):
        axes.plot(range(1, len(whole) + 1), whole, color=style.FAINT, linewidth=7)
        axes.plot(*zip(*before.items(), strict=True), color=style.COMPUTE, linewidth=1.8)
        axes.plot(*zip(*after.items(), strict=True), color=AGAIN, linewidth=1.8)
        last, loss = list(before.items())[-1]
        axes.plot(last, loss, "X", color=DEAD, markersize=10, zorder=4)
        first = min(after) - 1
        for x, colour, text, points, side in (
            (first, style.INK, f"checkpoint of step {first}", -4, "right"),
            (last, DEAD, f"killed after step {last}", 4, "left"),
        ):
            axes.axvline(x, color=colour, linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
            look = {"xycoords": axes.get_xaxis_transform(), "va": "top", "ha": side}
            pen.beside(axes, (x, 0.97), text, points, color=style.legible(colour), **look)
        axes.set(xlabel="step", ylabel="loss", xlim=(0, len(whole) + 1))
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        pen.key(axes, {"never killed": style.FAINT, "killed": style.COMPUTE, "gone on": AGAIN})
    return figure


def downtime(death: Death, title: str, before: float = 1.0, after: float = 1.0) -> Figure:
    """What each rank did around the death, by its diary, in the words of Death.parts."""
    start = death.when - before
    stop = death.when + sum(death.parts.values()) + after
    colours = style.tint(DEAD, 0.3), style.COMMUNICATION, LOADING, AGAIN
    key: dict[str, ColorType] = {"steps": style.COMPUTE}
    key |= zip(PARTS, colours, strict=True)
    bars, ranks = [], sorted({entry["rank"] for entry in death.entries})
    for rank in ranks:
        for restart in (0, 1):
            mine = [e for e in death.entries if (e["rank"], e["restart"]) == (rank, restart)]
            mine = [e for e in mine if e["what"] != "joined"]  # no bar of its own
            mine = [{"what": "death", "when": death.when}, *mine] if restart else mine
            for one, other in pairwise(mine):
                kind = _kind(one, other, restart, death.lost)
                ends = max(one["when"], start) - start, min(other["when"], stop) - start
                if kind and ends[0] < ends[1]:
                    bars.append(Bar(rank, *ends, key[kind]))
    panel = Panel([f"rank {rank}" for rank in ranks], bars)
    figure = over_time([panel], title, key, end=stop - start, row_inches=0.5)
    axes = figure.axes[0]
    axes.axvline(before, color=DEAD, linewidth=1.4)
    return figure


def _kind(before: Mapping, entry: Mapping, restart: int, lost: Sequence[int]) -> str:
    """What a rank did between two notes; its first step is seen with what came before."""
    restarting, importing, loading, again = PARTS
    if entry["what"] == "step":
        if before["what"] == "imported":
            return loading
        return again if restart and entry["step"] in lost else "steps"
    return {"death": restarting, "started": importing}.get(before["what"], "")


def forgotten(
    before: Sequence[float], after: Mapping[str, Sequence[float]], title: str, first: int = 1
) -> Figure:
    """The losses of a run up to its stop, and of those that went on from there, by their names.

    first: the step from which on they are drawn.
    """
    stop = len(before)
    with style.plot(3.1, title) as (figure, axes):
        axes.plot(range(first, stop + 1), before[first - 1 :], color=style.INK, linewidth=2.4)
        colours = dict(zip(after, COLOURS, strict=False))
        for number, (name, losses) in enumerate(after.items()):
            look = {"color": colours[name], "linewidth": 1.8 if number else 5}
            axes.plot(range(stop, stop + len(losses) + 1), [before[-1], *losses], **look)
        axes.axvline(stop, color=style.INK, linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
        at_top = {"xycoords": axes.get_xaxis_transform(), "va": "top"}
        pen.beside(axes, (stop, 0.97), f"stopped after step {stop}", **at_top)
        axes.set(xlabel="step", ylabel="loss")
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        axes.margins(x=0.02)
        pen.name_ends(axes, {name: losses[-1] for name, losses in after.items()}, colours)
    return figure


def cut_off(ways: Mapping[str, Sequence[Moment]], title: str) -> Figure:
    """A row for each way to save: what was found, by the call before which the saver was killed."""
    most = max(map(len, ways.values()))
    filled = [
        Cell(row, place, [FOUND[moment.found]], "lived" if moment is moments[-1] else "")
        for row, moments in enumerate(ways.values())
        for place, moment in enumerate(moments)
    ]
    with style.plot(0.75 + 0.42 * len(ways), title) as (figure, axes):
        cells(axes, list(ways), most, filled)
        axes.set_xlabel("killed before call 1, 2, ... to the disk; the last one lived", loc="left")
        pen.key(axes, {f"found: {name}": colour for name, colour in FOUND.items()})
    return figure


def a_year(found: Mapping[float, float], save: float, restart: float, mean: float) -> Figure:
    """Goodput over the interval: Daly's line, circles of a year drawn at random, Young's interval.

    found: goodput by minutes between saves. All else in seconds.
    """
    minutes, at, short = list(found), best(save, mean), young(save, mean) / 60
    line = [minutes[0] * (minutes[-1] / minutes[0]) ** (k / 60) for k in range(61)]
    title = f"Saved every {at / 60:.0f} minutes, {goodput(at, save, restart, mean):.0%} is useful"
    with style.plot(2.9, title) as (figure, axes):
        shares = [100 * goodput(60 * each, save, restart, mean) for each in line]
        axes.plot(line, shares, color=style.COMPUTE, linewidth=2)
        circles = {"color": AGAIN, "markeredgecolor": style.INK, "markersize": 7}
        axes.plot(minutes, [100 * one for one in found.values()], "o", **circles)
        axes.axvline(short, color=style.INK, linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
        look = {"xycoords": axes.get_xaxis_transform(), "va": "bottom"}
        pen.beside(axes, (short, 0.04), f"Young: {short:.1f} min", **look)
        axes.set(xlabel="minutes between saves", ylabel="goodput, %", xscale="log")
        axes.set_xticks(minutes, [f"{each:g}" for each in minutes])
        axes.set_xticks([], minor=True)
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        pen.key(axes, {"Daly's formula": style.COMPUTE, "a year at random": AGAIN})
    return figure


def cut_boxes(
    shape: tuple[int, int], saved: Sequence[Box], wanted: Sequence[Box], title: str
) -> Figure:
    """A matrix in the colours of the ranks that saved it, and outlines of what others want."""
    with style.plot(2.6, title, 1, 3) as (figure, grid):
        headings = "saved by 2 ranks", f"wanted by {len(wanted)}", "what they share"
        shared = [part for want in wanted for have in saved if (part := overlap(have, want))]
        for axes, heading, boxes in zip(grid, headings, (saved, wanted, shared), strict=True):
            style.bare(axes, xlim=(-0.1, shape[1] + 0.1), ylim=(shape[0] + 0.1, -0.1))
            axes.set_title(heading, fontsize=style.TEXT_POINTS)
            for number, box in enumerate(boxes):
                colour = _owner_colour(box, saved) if boxes is not wanted else style.PAPER
                _draw_box(axes, box, colour, number if boxes is not shared else None)
    return figure


def _owner_colour(box: Box, saved: Sequence[Box]) -> str:
    return style.rank_colour(next(r for r, have in enumerate(saved) if overlap(have, box)))


def _draw_box(axes: Axes, box: Box, colour: str, rank: int | None) -> None:
    (top, left), (tall, wide) = box
    pen.box(axes, (left, top), (wide, tall), colour, style.INK, 1.2)
    text = f"rows {top}:{top + tall}\ncols {left}:{left + wide}"
    text = text if rank is None else f"rank {rank}\n{text}"
    middle = left + wide / 2, top + tall / 2
    pen.small(axes, middle, text, va="center", color=style.readable_on(colour))
