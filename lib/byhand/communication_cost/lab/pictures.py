"""What lecture 04 draws and lets one drag: overlap, alpha and beta, a roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from byhand.communication_cost import AlphaBeta, crossover
from byhand.communication_cost.lab import Sweep
from byhand.words import num_bytes_text

if TYPE_CHECKING:
    from ipywidgets import VBox

    from byhand.figures.style import CourseFigure
    from byhand.runtime import Run

NUM_RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def cost_explorer(measured: Sweep | None = None) -> VBox:
    """Drag alpha and beta: the ring's line over what was measured, and where a rival crosses it.

    measured: timings of an all-reduce, drawn where the number of ranks is theirs; the sliders start
    at their fit. Starts no rank, so it follows the mouse.
    """
    from ipywidgets import FloatLogSlider, SelectionSlider

    from byhand.tools.explorer import explorer, menu

    line = measured.fit().line if measured else AlphaBeta(1e-4, 1e-9)
    look = {"step": 0.02, "readout_format": ".2e", "style": {"description_width": "initial"}}
    alpha = FloatLogSlider(line.alpha, min=-7, max=-1, description="alpha, s a round", **look)
    beta = FloatLogSlider(line.beta, min=-12, max=-6, description="beta, s a byte", **look)
    start = measured.num_ranks if measured and measured.num_ranks in NUM_RANKS else 8
    ranks = SelectionSlider(options=NUM_RANKS, value=start, description="ranks")
    rivals = "recursive_doubling", "halving_doubling"
    rival = menu("rival", rivals, rivals[0])
    few = {alpha.description: [alpha.value * part for part in (1 / 100, 1 / 10, 1 / 3, 3)]}
    few |= {beta.description: [beta.value / 10, 10 * beta.value], "ranks": [4, 16, 256]}
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


def draw_crossings(line: AlphaBeta, num_ranks: Sequence[int], title: str) -> CourseFigure:
    """Side by side for each number of ranks: the ring's seconds and doubling's, where they meet."""
    from matplotlib.ticker import FuncFormatter

    from byhand.figures import style

    sizes = [2 ** (power / 2) for power in range(24, 56)]
    colours = {"ring": style.RANK_COLOURS[0], "recursive_doubling": style.RANK_COLOURS[5]}
    with style.plot(2.7, title, 1, len(num_ranks), sharey=True) as (figure, every):
        for axes, ranks in zip(every, num_ranks, strict=True):
            axes.set(xscale="log", yscale="log", xlabel="bytes of the tensor")
            axes.set_title(f"{ranks} ranks", loc="left", **style.TITLE)
            for name, colour in colours.items():
                axes.plot(sizes, [line.seconds(name, ranks, s) for s in sizes], color=colour, lw=2)
            axes.set_xticks([1e4, 1e6, 1e8], ["10 KB", "1 MB", "100 MB"])
            axes.yaxis.set_major_formatter(FuncFormatter(lambda one, _: style.seconds_text(one)))
            axes.grid(color=style.FAINT, linewidth=0.5)
            axes.minorticks_off()
            if meet := crossover(line, "ring", "recursive_doubling", ranks):
                point = meet, line.seconds("ring", ranks, meet)
                axes.plot(*point, "o", color=style.INK, markersize=7)
                look = {"textcoords": "offset points", "fontsize": style.TEXT_POINTS}
                axes.annotate(num_bytes_text(meet), point, (-6, 8), ha="right", **look)
        for name, colour, place in zip(colours, colours.values(), (0.86, 0.74), strict=True):
            look = {"color": colour, "transform": every[0].transAxes}
            every[0].text(0.05, place, name.replace("_", " "), **look)
    return figure


def draw_roofline(
    flops_per_second: float,
    links: Mapping[str, float],
    title: str,
    marks: Mapping[str, float] | None = None,
) -> CourseFigure:
    """What a GPU computes under data parallelism, over its copy's tokens a step, by its link.

    Everything that can hide hides: the rate is the lesser of the GPU's own and tokens · bytes/s. A
    dot stands at the tokens where they meet. marks: numbers of tokens by name, each a line from top
    to bottom.
    """
    from matplotlib.ticker import FuncFormatter

    from byhand.figures import pen, style
    from byhand.figures.curves import COLOURS

    tokens = [2 ** (power / 4) for power in range(32, 81)]
    peak = flops_per_second / 1e12
    with style.plot(3.2, title) as (figure, axes):
        axes.set(xscale="log", yscale="log", ylim=(1, 4 * peak), xlim=(tokens[0], tokens[-1]))
        axes.set(xlabel="tokens that a copy gets in a step", ylabel="10¹² operations a second")
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        for (name, rate), colour in zip(links.items(), COLOURS, strict=False):
            reached = [min(flops_per_second, each * rate) / 1e12 for each in tokens]
            axes.plot(tokens, reached, color=colour, linewidth=2)
            bend = flops_per_second / rate
            axes.scatter([bend], [peak], color=colour, zorder=4)
            pen.beside(axes, (bend, 1.35 * peak), f"{bend:,.0f}", 0, ha="center", color=colour)
            low = max(8.0, 2 * tokens[0] * rate / 1e12)
            pen.beside(
                axes, (low * 1e12 / rate, low), name, 5, color=style.legible(colour), va="top"
            )
        for name, place in (marks or {}).items():
            axes.axvline(place, color=style.INK, linewidth=1, linestyle=(0, (3, 3)))
            paper = {"fc": style.PAPER, "ec": "none", "pad": 1}
            pen.beside(axes, (place, 2.6 * peak), name, 0, ha="center", bbox=paper, zorder=5)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda one, _: f"{one:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda one, _: f"{one:,.0f}"))
        axes.minorticks_off()
    return figure
