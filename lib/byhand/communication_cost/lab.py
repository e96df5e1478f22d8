"""Collectives timed on real ranks, over sizes: what lecture 04 runs, draws and lets one drag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from byhand.communication_cost import AlphaBeta, bus_bandwidth, cost, crossover, literature_formula
from byhand.communication_cost.networks import TOPOLOGIES
from byhand.communication_cost.timing import Timing, device, take_turns
from byhand.runtime import Run, VirtualNetwork, launch

if TYPE_CHECKING:  # ranks import this module: matplotlib and scipy would cost each of them seconds
    from ipywidgets import VBox

    from byhand.communication_cost.fit import Fit
    from byhand.figures.style import CourseFigure

ELEMENT_BYTES = 4
CALLS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send")
WIRED = ("ring", "double_ring", "halving_doubling", "recursive_doubling", "direct")
NUM_RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SIZES = tuple(4**power for power in range(3, 12))  # 64 B to 4 MB


@dataclass(repr=False)
class Sweep:
    """One collective's timings by its number of bytes, on `num_ranks` ranks."""

    collective: str
    num_ranks: int
    timings: dict[int, Timing]
    run: Run

    @property
    def seconds(self) -> dict[int, float]:
        """The median of each size."""
        return {num_bytes: timing.median for num_bytes, timing in self.timings.items()}

    def fit(self, sizes: Sequence[int] | None = None, formula: Callable | None = None) -> Fit:
        """Alpha and beta of these sizes (None: all), by a formula of ranks and bytes or by ours."""
        from byhand.communication_cost.fit import fit

        formula = formula or partial(cost, self.collective)
        timings = {size: self.timings[size] for size in sizes or self.timings}
        costs = [formula(self.num_ranks, size) for size in timings]
        medians, doubts = zip(*((t.median, t.doubt) for t in timings.values()), strict=True)
        return fit(costs, medians, doubts)

    def points(self, sizes: Sequence[int] | None = None) -> list[tuple[float, ...]]:
        """(bytes, seconds, and the quartiles) of these sizes (None: all), for a figure."""
        timings = {size: self.timings[size] for size in sizes or self.timings}
        return [(size, timing.median, *timing.quartiles) for size, timing in timings.items()]

    def __repr__(self) -> str:
        row = "{:>10} {:>10} {:>17} {:>8} {:>8}".format
        lines = [row("bytes", "time (us)", "quartiles", "algbw", "busbw") + "  MB/s"]
        for num_bytes, timing in self.timings.items():
            low, high = (1e6 * seconds for seconds in timing.quartiles)
            bus = bus_bandwidth(self.collective, self.num_ranks, num_bytes, timing.median)
            rates = [f"{rate / 1e6:.1f}" for rate in (num_bytes / timing.median, bus)]
            seconds = f"{1e6 * timing.median:.0f}", f"{low:.0f} to {high:.0f}"
            lines.append(row(f"{num_bytes:,}", *seconds, *rates))
        return "\n".join(lines)


def sweep(
    collective: str = "all_reduce",
    world_size: int = 2,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 15,
    **options: Any,
) -> Sweep:
    """Time torch's collective for every size, the sizes taking turns. options: of `launch`.

    sizes: in bytes as nccl-tests counts them; rounded up to whole elements for every rank.

    Raises:
        ValueError: a collective not in CALLS.
    """
    if collective not in CALLS:
        raise ValueError(f"unknown collective {collective!r}; known are {', '.join(CALLS)}")
    step = 1 if collective in ("send", "broadcast", "all_reduce") else world_size
    counts = [-(-num_bytes // (ELEMENT_BYTES * step)) * step for num_bytes in sizes]
    run = launch(_sweep_on_rank, world_size, (collective, counts, repetitions), **options)
    timings = {ELEMENT_BYTES * n: t for n, t in zip(counts, run.results[0], strict=True)}
    return Sweep(collective, world_size, timings, run)


def _sweep_on_rank(
    rank: int, world_size: int, collective: str, counts: list[int], repetitions: int
) -> list[Timing]:
    group = dist.group.WORLD
    if collective == "send":  # a rank that does nothing would count as late, or as early
        group = dist.new_group([0, world_size - 1])
        if rank not in (0, world_size - 1):
            return []
    calls = {number: _call(collective, count) for number, count in enumerate(counts)}
    return list(take_turns(calls, repetitions, group=group).values())


@dataclass(repr=False)
class FormulaRace:
    """An all-reduce's time by number of hosts; two formulas that were fitted to the first."""

    measured: dict[int, Timing]
    predicted: dict[str, list[float]]  # seconds at each number, by formula

    def __repr__(self) -> str:
        lines = []
        for index, (hosts, timing) in enumerate(self.measured.items()):
            off = {name: found[index] / timing.median - 1 for name, found in self.predicted.items()}
            told = ", ".join(f"{name} {error:+.0%}" for name, error in off.items())
            lines.append(f"{hosts} hosts: {timing}; {told}")
        return "\n".join(lines)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.picture()._repr_png_()

    def picture(self) -> CourseFigure:
        """Milliseconds over hosts."""
        from byhand.figures import curves

        hosts, timings = list(self.measured), list(self.measured.values())
        seconds = {"measured": [timing.median for timing in timings], **self.predicted}
        lines = {name: [1e3 * s for s in found] for name, found in seconds.items()}
        band = {"measured": [tuple(1e3 * s for s in timing.quartiles) for timing in timings]}
        off = max(found[-1] for found in self.predicted.values()) / timings[-1].median
        title = (
            f"Fitted to {hosts[0]} hosts, one formula is {off:.1f} times too slow at {hosts[-1]}"
        )
        axes = {"xlabel": "hosts", "ylabel": "milliseconds", "x": hosts, "log_x": True}
        return curves(lines, title=title, spread=band, from_zero=True, **axes)


def formula_race(num_hosts: Sequence[int] = (2, 4, 8), repetitions: int = 7) -> FormulaRace:
    """Fit both formulas to the first number of hosts, and hold both against the others.

    1 MB, on hosts of one rank each with 25 MB/s; the fit sees smaller sizes too.
    """
    num_bytes, sweeps = 1 << 20, {}
    for hosts in num_hosts:
        network = VirtualNetwork(hosts, 1, bytes_per_second=25e6)
        sizes = [num_bytes] if sweeps else [num_bytes >> shift for shift in range(16, -1, -2)]
        sweeps[hosts] = sweep("all_reduce", hosts, sizes, repetitions, network=network)
    formulas = {"ring": partial(cost, "ring"), "α log n + β S n": literature_formula}
    predicted = {}
    for name, formula in formulas.items():
        line = sweeps[num_hosts[0]].fit(formula=formula).line
        predicted[name] = [line.of(formula(hosts, num_bytes)) for hosts in num_hosts]
    return FormulaRace({n: one.timings[num_bytes] for n, one in sweeps.items()}, predicted)


def draw_wirings(num_ranks: int, num_bytes: float, line: AlphaBeta) -> CourseFigure:
    """Five topologies, and the milliseconds of five all-reduces on each."""
    from byhand.figures import wirings

    wires, table = {}, {}
    for name, build in TOPOLOGIES.items():
        network = build(num_ranks, line)
        ways = [network.way(a, b) for a in range(num_ranks) for b in range(num_ranks) if a != b]
        hops = {hop.link for way in ways for hop in way}
        wires[name] = {_ends(*link) for link in hops}
        table[name] = {each: 1e3 * network.seconds(each, num_bytes) for each in WIRED}
    title = f"Milliseconds to all-reduce {num_bytes / 1e9:g} GB on {num_ranks} ranks, by wires"
    return wirings(wires, table, num_ranks, title)


def draw_roofline(
    flops_per_second: float, links: Mapping[str, float], most_tokens: int = 1 << 20
) -> CourseFigure:
    """What a GPU computes under data parallelism, over its tokens a step, by its link's bytes/s.

    Everything that can hide hides: the rate is the lesser of the GPU's own and tokens · bytes/s.
    """
    from byhand.figures import curves

    tokens = [2 ** (power / 4) for power in range(24, 4 * most_tokens.bit_length() - 3)]
    lines = {
        name: [min(flops_per_second, each * rate) / 1e12 for each in tokens]
        for name, rate in links.items()
    }
    name, slowest = min(links.items(), key=lambda link: link[1])
    title = f"{name}: exposed below {flops_per_second / slowest:,.0f} tokens a GPU"
    axes = {"xlabel": "tokens of a GPU in a step", "ylabel": "TFLOP/s", "x": tokens}
    figure = curves(lines, title=title, log_x=True, log_y=True, **axes)
    ticks = [10**power for power in range(2, len(str(most_tokens)))]
    figure.axes[0].set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    return figure


def _ends(kind: str, a: int, b: int) -> tuple[int, int]:
    return {"out": (a, -1), "in": (-1, b)}.get(kind, (a, b))


def _call(collective: str, count: int) -> Callable[[], Any]:
    """One of CALLS on tensors made here, of `count` elements in the whole."""
    world_size = dist.get_world_size()
    whole, other = torch.zeros(2, count, device=device())
    shard = torch.zeros(count // world_size, device=device())
    if collective == "send" and dist.get_rank() > 0:
        return lambda: dist.recv(whole, 0)
    return {
        "all_reduce": lambda: dist.all_reduce(whole),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, shard),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(shard, whole),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
        "send": lambda: dist.send(whole, world_size - 1),
    }[collective]


def cost_explorer(measured: Sweep | None = None) -> VBox:
    """Drag alpha and beta: the ring's line over what was measured, and where a rival crosses it.

    measured: timings of an all-reduce, drawn where the number of ranks is theirs; the sliders start
    at their fit. Starts no rank, so it follows the mouse.
    """
    from ipywidgets import Dropdown, FloatLogSlider, SelectionSlider

    from byhand.tools.explorer import explorer

    line = measured.fit().line if measured else AlphaBeta(1e-4, 1e-9)
    look = {"step": 0.02, "readout_format": ".2e", "style": {"description_width": "initial"}}
    alpha = FloatLogSlider(line.alpha, min=-7, max=-2, description="alpha, s a round", **look)
    beta = FloatLogSlider(line.beta, min=-12, max=-6, description="beta, s a byte", **look)
    start = measured.num_ranks if measured and measured.num_ranks in NUM_RANKS else 8
    ranks = SelectionSlider(options=NUM_RANKS, value=start, description="ranks")
    rival = Dropdown(options=["recursive_doubling", "halving_doubling"], description="rival")

    def drawn(alpha: float, beta: float, num_ranks: int, rival: str) -> tuple[CourseFigure, str]:
        return draw_costs(AlphaBeta(alpha, beta), num_ranks, rival, measured)

    return explorer([[alpha, beta], [ranks, rival]], drawn)


def draw_costs(
    line: AlphaBeta, num_ranks: int, rival: str, measured: Sweep | None = None
) -> tuple[CourseFigure, str]:
    """The picture, and what it says in a sentence."""
    from byhand.figures import costs
    from byhand.figures.costs import seconds_text
    from byhand.figures.style import num_bytes_text

    lines = {name: partial(line.seconds, name, num_ranks) for name in ("ring", rival)}
    crossing = crossover(line, "ring", rival, num_ranks)
    title = f"{num_ranks} ranks: alpha {seconds_text(line.alpha)}, {1e-6 / line.beta:,.3g} MB/s"
    marks = {"equal": crossing} if crossing else {}
    here = measured is not None and measured.num_ranks == num_ranks
    points = {"measured": measured.points()} if here else {}
    name = rival.replace("_", " ").replace("halving doubling", "halving-doubling")
    if crossing is not None:
        text = f"Below {num_bytes_text(crossing)} {name} wins, above it the ring."
    elif lines["ring"](1) == lines[rival](1):
        text = f"The ring and {name} cost the same at every size."
    else:
        winner = name.capitalize() if lines[rival](1) < lines["ring"](1) else "The ring"
        text = f"{winner} wins at every size."
    return costs(points, lines, title, marks, (4, 1 << 30)), text
