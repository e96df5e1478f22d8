"""What lecture 04 draws and lets one drag: overlap, alpha and beta, a table of NCCL, a roofline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from byhand.communication_cost import AlphaBeta, crossover
from byhand.communication_cost.lab import Sweep
from byhand.words import num_bytes_text

if TYPE_CHECKING:
    from ipywidgets import VBox

    from byhand.figures.curves import Point
    from byhand.figures.style import CourseFigure
    from byhand.runtime import Run


NUM_RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def cost_explorer(measured: Sweep | None = None, num_ranks: int = 8) -> VBox:
    """Drag alpha and beta: the ring's line over what was measured, and where a rival crosses it.

    measured: timings of an all-reduce, drawn where the number of ranks is theirs; the sliders start
    at their fit, and at `num_ranks`. Starts no rank, so it follows the mouse.
    """
    from ipywidgets import FloatLogSlider, SelectionSlider

    from byhand.tools.explorer import explorer, menu

    line = measured.fit().line if measured else AlphaBeta(1e-4, 1e-9)
    look = {"step": 0.02, "readout_format": ".2e", "style": {"description_width": "initial"}}
    alpha = FloatLogSlider(line.alpha, min=-7, max=-1, description="alpha, s a round", **look)
    beta = FloatLogSlider(line.beta, min=-12, max=-6, description="beta, s a byte", **look)
    ranks = SelectionSlider(options=NUM_RANKS, value=num_ranks, description="ranks")
    rivals = "recursive_doubling", "halving_doubling"
    rival = menu("rival", rivals, rivals[0])
    few = {alpha.description: [alpha.value * part for part in (1 / 100, 1 / 10, 1 / 3, 3)]}
    few |= {beta.description: [beta.value / 10, 10 * beta.value], "ranks": [4, 16, 64, 256]}
    timed = [measured.num_ranks, measured.points()] if measured else [0, []]
    return explorer([[alpha, beta], [ranks, rival]], partial(draw_costs, timed=timed), few)


def draw_costs(
    alpha: float, beta: float, num_ranks: int, rival: str, timed: Sequence = (0, ())
) -> tuple[CourseFigure, str]:
    """The picture, and what it says in a sentence.

    timed: the number of ranks of an all-reduce that was measured, and its points.
    """
    from byhand.figures import seconds_by_size

    line = AlphaBeta(alpha, beta)
    name = rival.replace("_", " ").replace("halving doubling", "halving-doubling")
    named = {"ring": "ring", name: rival}
    lines = {text: partial(line.seconds, each, num_ranks) for text, each in named.items()}
    crossing = crossover(line, "ring", rival, num_ranks)
    marks = {"equal": crossing} if crossing else {}
    points = {"measured": timed[1]} if timed[0] == num_ranks else {}
    if crossing is not None:
        text = f"Below {num_bytes_text(crossing)} {name} wins, above it the ring."
    elif lines["ring"](1) == lines[name](1):
        text = f"The ring and {name} cost the same at every size."
    else:
        winner = name.capitalize() if lines[name](1) < lines["ring"](1) else "The ring"
        text = f"{winner} wins at every size."
    title = f"{num_ranks} ranks: {text[0].lower()}{text[1:-1]}"
    return seconds_by_size(points, lines, title, marks, (4, 1 << 30)), text


def draw_straight(
    points: Mapping[str, Sequence[Point]],
    lines: Mapping[str, Callable[[float], float]],
    title: str,
    mark: float | None = None,
) -> CourseFigure:
    """Seconds over bytes, both from zero on, where alpha and beta are a start and a climb.

    Points that have no line are joined. mark: a size where lines meet.
    """
    from matplotlib.ticker import MaxNLocator

    from byhand.figures import pen, style
    from byhand.figures.curves import COLOURS, MARKERS

    most = max(point[0] for some in points.values() for point in some)
    colours = dict(zip(dict.fromkeys([*lines, *points]), COLOURS, strict=False))
    ends = {name: line(most) for name, line in lines.items()}
    with style.plot(3.4, title) as (figure, axes):
        axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
        for name, line in lines.items():
            axes.plot([0, most], [line(0), line(most)], color=colours[name], lw=1.8)
        for (name, some), marker in zip(points.items(), MARKERS, strict=False):
            sizes, seconds, low, high = zip(*some, strict=True)
            axes.vlines(sizes, low, high, color=colours[name], linewidth=1.2)
            look = {"color": colours[name], "lw": 1.2 * (name not in lines), "mec": style.PAPER}
            axes.plot(sizes, seconds, f"-{marker}", markersize=6, **look)
            ends.setdefault(name, seconds[-1])
        if mark and mark <= most:
            axes.axvline(mark, color=style.INK, linewidth=0.9, linestyle=(0, (3, 3)), zorder=1)
        axes.set(xlim=(-most / 60, most * 1.02), xlabel="bytes of the tensor")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        for axis, text in ((axes.xaxis, num_bytes_text), (axes.yaxis, style.seconds_text)):
            axis.set_major_formatter(lambda one, _, text=text: text(one) if one else "0")
        pen.name_ends(axes, ends, colours)
    return figure


def draw_overlap(run: Run, names: Sequence[str], title: str) -> CourseFigure:
    """What rank 0 computed, and what travelled meanwhile: for each name, its try of median length.

    The names take turns. Rank 0's results are (call, work begins, work ends, all is done) of each
    try, an all-reduce each.
    """
    from byhand.figures.lanes import Bar, Panel, over_time
    from byhand.figures.style import COMMUNICATION, COMPUTE, PAPER

    tries = list(zip(run.ledger.select("all_reduce", rank=0), run.results[0], strict=True))
    panels = []
    for number, name in enumerate(names):
        call, moments = _middle_one(tries[number :: len(names)])
        begin, worked, done = (moment - moments[0] for moment in moments[1:])
        waits = [(0.0, begin), (worked, done)]
        bars = [Bar(0, *wait, PAPER, "waits") for wait in waits if wait[1] - wait[0] > 1e-3]
        bars += [Bar(0, begin, worked, COMPUTE, "computes")] if worked > begin else []
        bars.append(Bar(1, 0, min(call.end - call.start, done), COMMUNICATION, "all-reduce"))
        panels.append(Panel(["rank 0", "its link"], bars, f"{name}: {1e3 * done:.0f} ms"))
    return over_time(panels, title, {})


def _middle_one(tries: Sequence[tuple[Any, Sequence[float]]]) -> tuple[Any, Sequence[float]]:
    """The try that took the median time, of (call, moments)."""
    return sorted(tries, key=lambda one: one[1][-1] - one[1][0])[len(tries) // 2]


def draw_ways(
    measured: Mapping[int, float], ends: AlphaBeta, ways: tuple[AlphaBeta, AlphaBeta]
) -> CourseFigure:
    """A library's times by size, on the line through both ends and on those of two algorithms.

    ends, ways: of whole calls, the seconds of a start and of a byte. An arrow stands at the size
    that is the most times above `ends`. The large picture has linear axes, on which each of these
    is a straight line, up to 50 MB; the inset has all sizes, on logarithmic ones.
    """
    from matplotlib.ticker import FuncFormatter

    from byhand.figures import pen, style
    from byhand.figures.curves import COLOURS

    def seconds(line: AlphaBeta, size: float) -> float:
        return line.alpha + line.beta * size

    def told(line: AlphaBeta) -> str:
        return f"{style.seconds_text(line.alpha)}, then {1e-9 / line.beta:.0f} GB/s"

    measured = {size: each for size, each in measured.items() if size >= 64}
    least, most, wide = min(measured), max(measured), 5e7
    worst = max(measured, key=lambda size: measured[size] / seconds(ends, size))
    low, high = seconds(ends, worst), measured[worst]
    size, times = num_bytes_text(worst), f"{high / low:.1f} times"
    title = f"{size} take {times} what one line through both ends says"
    looks = ("both ends", "#7f7f7f"), ("one way", COLOURS[0]), ("another", COLOURS[1])
    with style.plot(3.6, title) as (figure, axes):
        axes.set(xlim=(0, wide), ylim=(0, 1.5e-3), xlabel="bytes of the tensor")
        axes.grid(color=style.FAINT, linewidth=0.5)
        inset = axes.inset_axes((0.55, 0.36, 0.42, 0.21))
        inset.set(xscale="log", yscale="log", xlim=(least / 1.8, most * 1.8), ylim=(6e-5, 0.15))
        inset.set_title("all sizes, logarithmic axes", loc="left", fontsize=8, weight="normal")
        drawn = [least * (most / least) ** (step / 200) for step in range(201)]
        for line, (name, colour) in zip((ends, *ways), looks, strict=True):
            for panel in (axes, inset):
                panel.plot(drawn, [seconds(line, size) for size in drawn], color=colour, lw=1.8)
            end = min(wide, (1.35e-3 - line.alpha) / line.beta)  # where the line leaves the picture
            text, look = f"{name}:\n{told(line)}", {"color": style.legible(colour)}
            pen.beside(axes, (end, seconds(line, end)), text, 14, **look)
        for panel, points in ((axes, 4), (inset, 2)):
            dots = list(measured), list(measured.values())
            panel.plot(*dots, "o", color=style.INK, markersize=points)
        pen.arrow(axes, (worst, low), (worst, high))
        pen.beside(axes, (worst, (low + high) / 2), times, -5, ha="right", color=style.INK)
        axes.set_xticks([0, 1e7, 2e7, 3e7, 4e7, 5e7])
        inset.set_xticks([1e2, 1e6, 1e10])
        inset.set_yticks([1e-4, 1e-1])
        for panel in (axes, inset):
            panel.xaxis.set_major_formatter(FuncFormatter(lambda size, _: num_bytes_text(size)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda one, _: style.seconds_text(one)))
            panel.minorticks_off()
        inset.tick_params(labelsize=8)
    return figure


def draw_two_hosts() -> CourseFigure:
    """Sixteen GPUs on two hosts: the links between them, of eight rings and of two levels.

    Ring g goes round a host's GPUs from g on, leaves it by the link of the last, and comes back by
    that of g. Ring 0 is dark, the others pale. In two levels GPU g has a link to GPU g.
    """
    from byhand.figures import pen, style
    from byhand.figures.curves import COLOURS

    inside, strong = style.COMMUNICATION, COLOURS[1]
    pale = style.tint(strong, 0.4)
    title = "Two ways to use all eight cards of a host"
    with style.drawing(2.2, title) as (figure, axes):
        names = "eight rings over all, one drawn dark", "two levels: sums inside (grey) first"
        for left, name in zip((0.75, 4.15), names, strict=True):
            places = [left + 0.34 * gpu for gpu in range(8)]
            rings = "rings" in name
            axes.text(left - 0.12, 0.55, name, weight="bold")
            for top, host in ((0.8, "host 0"), (1.7, "host 1")):
                ends = [places[0], places[-1]]
                axes.plot(ends, [top, top], color=inside, lw=8, zorder=1)
                if rings:
                    axes.plot(ends, [top, top], color=strong, lw=2, zorder=1)
                for x in places:
                    pen.box(axes, (x - 0.12, top - 0.12), (0.24, 0.24), style.COMPUTE)
                pen.small(axes, (left - 0.2, top), host, ha="right")
            for gpu, x in enumerate(places):
                down, up = (strong if not rings or gpu == one else pale for one in (7, 0))
                pen.arrow(axes, (x + 0.05, 0.94), (x + 0.05, 1.56), down)
                pen.arrow(axes, (x - 0.05, 1.56), (x - 0.05, 0.94), up)
    return figure


def draw_roofline(
    flops_per_second: float,
    links: Mapping[str, float],
    title: str,
    marks: Mapping[str, float] | None = None,
) -> CourseFigure:
    """Backward's operations a second under data parallelism, over its tokens, by its link.

    Everything that can hide hides: the rate is the lesser of the GPU's own and tokens · bytes/s. A
    dot stands at the tokens where they meet. marks: numbers of tokens by name, each a line from top
    to bottom, with the share of the GPU's rate where a link allows less, down to a tenth.
    """
    from matplotlib.ticker import FuncFormatter

    from byhand.figures import pen, style
    from byhand.figures.curves import COLOURS

    first, last = 256.0, 2.0**20
    peak, paper = flops_per_second / 1e12, {"fc": style.PAPER, "ec": "none", "pad": 1}
    with style.plot(3.2, title) as (figure, axes):
        axes.set(xscale="log", yscale="log", ylim=(1, 4 * peak), xlim=(first, last))
        axes.set(xlabel="tokens of the backward", ylabel="backward, 10¹² operations/s")
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        axes.hlines(peak, first, last, color=style.INK, linewidth=1.2, zorder=1)
        pen.beside(axes, (first, 1.35 * peak), f"C = {peak:,.0f}", 4)
        for name, place in (marks or {}).items():
            axes.axvline(place, color=style.INK, linewidth=1, linestyle=(0, (3, 3)))
            pen.beside(axes, (place, 2.6 * peak), name, 0, ha="center", bbox=paper, zorder=5)
        for (name, rate), colour in zip(links.items(), COLOURS, strict=False):
            bend, look = flops_per_second / rate, {"color": style.legible(colour), "bbox": paper}
            axes.plot([first, bend], [first * rate / 1e12, peak], color=colour, linewidth=2)
            axes.scatter([bend], [peak], color=colour, zorder=4)
            pen.beside(axes, (bend, 1.35 * peak), f"{bend:,.0f}", 0, ha="center", color=colour)
            low = max(8.0, 2 * first * rate / 1e12)
            pen.beside(axes, (low * 1e12 / rate, low), name, 7, va="top", zorder=3, **look)
            for tokens in (marks or {}).values():
                if 0.1 < tokens / bend < 0.9:
                    axes.scatter([tokens], [tokens * rate / 1e12], color=colour, zorder=4)
                    point = (tokens, 0.8 * tokens * rate / 1e12)
                    text = f"{tokens / bend:.0%} of C"
                    pen.beside(axes, point, text, 6, va="top", zorder=5, **look)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda one, _: f"{one:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda one, _: f"{one:,.0f}"))
        axes.minorticks_off()
    return figure
