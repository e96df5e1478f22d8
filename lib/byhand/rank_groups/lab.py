"""What lecture 11 runs on two hosts, draws, and lets one drag."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from byhand.rank_groups.grid import AXES, ORDER, RankGrid, rank_groups
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.rank_groups.traffic import bytes_leaving, stays_inside, transformer_bytes
from byhand.runtime import Run
from byhand.words import counted, num_bytes_text

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from ipywidgets import VBox
    from matplotlib.axes import Axes

    from byhand.figures.style import CourseFigure

WORLD_SIZES = (16, 32, 64, 96, 128, 256, 512, 1024, 3072, 4096, 8192, 16384)
DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
ORDERS = (
    *(ORDER, "tp-cp-ep-pp-dp", "tp-pp-dp-cp-ep", "dp-cp-ep-tp-pp"),
    *("pp-tp-cp-ep-dp", "pp-dp-ep-cp-tp", "tp-dp-pp"),
)
GPT3 = {"num_layers": 96, "hidden": 12288, "sequence": 2048}
GPT3_SEQUENCES = 64  # of a step, shared by the copies
TOLD = "A step of GPT-3 with 64 sequences: the most that a host sends to others is"
START_SECONDS = 600  # in which a plain process has imported torch, however busy the machine is

PLAIN = """
import os, threading, time
import torch, torch.distributed as dist
from byhand.rank_groups import rank_groups

{functions}

def say(text):
    print(text, flush=True)
    os._exit(0)

rank, world_size = {rank}, {world_size}
dist.init_process_group("gloo", f"file://{meet}", rank=rank, world_size=world_size)
dist.barrier()
threading.Timer({seconds}, say, ["waits"]).start()
try:
    say({name}(rank, world_size))
except Exception as error:
    say(type(error).__name__)
"""


ACTIVATION, GRADIENT = 62_500, 250_000  # float32 numbers: 0.25 and 1 MB


def one_step(rank: int, groups: Mapping[str, dist.ProcessGroup]) -> None:
    """What a rank sends in a step of two micro-batches, two layers a stage; nothing is computed."""
    activation, gradient = torch.ones(ACTIVATION), torch.ones(GRADIENT)
    for _ in range(2):  # micro-batches
        for _ in range(2 * 4):  # layers, and all-reduces in each
            dist.all_reduce(activation, group=groups["tp"])
        to_neighbours(rank, activation, groups["pp"])
    dist.all_reduce(gradient, group=groups["dp"])


def to_neighbours(rank: int, activation: Tensor, group: dist.ProcessGroup) -> None:
    """Send to the stage after this one and to the one before, and receive from both."""
    stages = dist.get_process_group_ranks(group)
    place = stages.index(rank)
    peers = [*stages[max(place - 1, 0) : place], *stages[place + 1 : place + 2]]
    pending: list[Any] = [dist.irecv(torch.empty_like(activation), peer) for peer in peers]
    pending += [dist.isend(activation, peer) for peer in peers]
    for message in pending:
        message.wait()


def timed_steps(
    rank: int, world_size: int, order: str, degrees: Mapping[str, int], steps: int = 3
) -> list[float]:
    """The seconds of each step, from a barrier on."""
    lists = rank_groups(world_size, **degrees, order=order)
    groups, took = groups_for_this_rank(lists, ["tp", "dp", "pp"]), []
    for _ in range(steps):
        dist.barrier()
        start = time.perf_counter()
        one_step(rank, groups)
        took.append(time.perf_counter() - start)
    return took


def code_of(function: Callable) -> str:
    """A function's lines, without its docstring and what it stands in."""
    source = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n *""".*?"""', "", source, count=1, flags=re.DOTALL).rstrip()


def plainly(
    function: Callable, world_size: int, *others: Callable, seconds: float = 3.0
) -> list[str]:
    """What plain processes, without the course's watch, say of function(rank, world_size).

    Each says what the function returned, the name of its error, or that it still waits after so
    many seconds, when it is stopped. others: functions that this one calls. All travel by source,
    and find time, torch, dist and rank_groups.
    """
    functions = "\n\n".join(map(inspect.getsource, (function, *others)))
    with tempfile.TemporaryDirectory() as folder:
        told = {"functions": functions, "name": function.__name__, "seconds": seconds}
        told |= {"world_size": world_size, "meet": str(Path(folder) / "meet")}
        scripts = [PLAIN.format(rank=rank, **told) for rank in range(world_size)]
        processes = [_start(script) for script in scripts]
        try:
            said = [process.communicate(timeout=START_SECONDS)[0] for process in processes]
        except subprocess.TimeoutExpired:
            said = ["did not begin"] * world_size
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return [f"rank {rank}: {text.strip() or 'ended'}" for rank, text in enumerate(said)]


def with_terms(said: str) -> str:
    """What a plain rank said, and the powers of ten in it: "rank 1: 110 = 10 + 100"."""
    total = said.split()[-1]
    digits = enumerate(reversed(total if total.isdigit() else ""))
    terms = [str(int(digit) * 10**place) for place, digit in digits if digit != "0"]
    return f"{said} = {' + '.join(terms)}" if terms else said


def _start(script: str) -> subprocess.Popen:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, **pipes)


def counted_leaving(
    run: Run, grid: RankGrid, ranks_per_host: int, names: Sequence[str], host: int = 0
) -> dict[str, float]:
    """By group name, the bytes that `host` sent to other hosts in collectives: the ledger's.

    Point-to-point messages and groups of other names are left out.
    """
    leaving = dict.fromkeys(names, 0.0)
    for event in run.ledger.events:
        if event.peer is not None or event.rank // ranks_per_host != host:
            continue
        mine = {name: grid.group(name, event.rank) for name in names}
        own = (n for n, ranks in mine.items() if ranks is not None and [*event.group] == [*ranks])
        if name := next(own, None):
            leaving[name] += event.bytes_to_other_hosts(ranks_per_host)
    return leaving


def show_grid(
    grid: RankGrid, ranks_per_host: int = 8, names: Sequence[str] | None = None, follow: int = 0
) -> CourseFigure:
    """The grid's groups of these names, a panel each; None: of each axis of more than one rank."""
    from byhand.figures import rank_grid

    sizes = {**grid.expert_sizes, **grid.dense_sizes}
    names = names or [axis for axis in AXES if sizes[axis] > 1] or ["dp"]
    shown = " × ".join(f"{axis} {n}" for axis, n in grid.dense_sizes.items() if n > 1)
    title = counted(grid.world_size, "rank", ",") + (f": {shown}" if shown else "")
    title += f", ep {grid.ep}" if grid.ep > 1 else ""
    groups = {name: grid.groups(name) for name in names}
    return rank_grid(groups, grid.world_size, ranks_per_host, follow, title)


def group_lines(
    rows: Mapping[str, RankGrid], ranks_per_host: int, title: str, names: Sequence[str] = ()
) -> CourseFigure:
    """A row for each grid, a panel for each name: a group is a line through its ranks.

    A frame is a host. Lines that leave one have the group's full colour, the others a pale one.
    names: of groups; where none is given, the axes in the order of each grid.
    """
    from byhand.figures import style

    drawn = {row: names or grid.order.split("-")[:3] for row, grid in rows.items()}
    panels = [(grid, name) for row, grid in rows.items() for name in drawn[row]]
    tracks = max(len(_tracks(grid.groups(name))) for grid, name in panels)
    height = 0.5 + len(rows) * (0.8 + 0.28 * tracks)
    columns = len(panels) // len(rows)
    with style.plot(height, title, len(rows), columns, squeeze=False) as (figure, every):
        for axes, (grid, name) in zip(every.flat, panels, strict=True):
            _draw_lines(axes, grid, name, ranks_per_host, tracks)
        for axes, row in zip(every[:, 0], rows, strict=True):
            word: dict[str, Any] = {"fontsize": style.TEXT_POINTS, "weight": "bold"}
            axes.annotate(row, (0, 1), (0, 17), **AT_TOP, **word)
    return figure


def leaves(grid: RankGrid, name: str, ranks_per_host: int) -> bool:
    """Does any group of that name have ranks on two hosts?"""
    return not stays_inside(grid.groups(name), ranks_per_host).all()


AT_TOP: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "va": "bottom",
}


def _tracks(groups: np.ndarray) -> list[list[list[int]]]:
    """The groups in as few lines as there may be, none over another."""
    tracks: list[list[list[int]]] = []
    for group in groups.tolist():
        free = next((track for track in tracks if track[-1][-1] < group[0]), None)
        if free is None:
            tracks.append(free := [])
        free.append(group)
    return tracks


def _draw_lines(axes: Axes, grid: RankGrid, name: str, ranks_per_host: int, most: int) -> None:
    from byhand.figures import pen, style

    def place(rank: int) -> float:  # a gap between hosts
        return rank + 0.8 * (rank // ranks_per_host)

    tracks, colour = _tracks(grid.groups(name)), style.group_colour(name)
    style.bare(axes, xlim=(-0.7, place(grid.world_size - 1) + 0.7), ylim=(most - 0.1, -0.6))
    for first in range(0, grid.world_size, ranks_per_host):
        corner, wide = (place(first) - 0.5, -0.55), ranks_per_host
        pen.box(axes, corner, (wide, len(tracks) + 0.1), style.PAPER, style.FAINT, 1.0)
        middle = place(first) + (ranks_per_host - 1) / 2, len(tracks) - 0.28
        pen.small(axes, middle, f"host {first // ranks_per_host}", va="top")
    crossing = 0
    for y, track in enumerate(tracks):
        for group in track:
            leaves = group[0] // ranks_per_host != group[-1] // ranks_per_host
            crossing += leaves
            hue = colour if leaves else style.tint(colour, 0.3)
            marks: dict[str, Any] = {
                "marker": "o",
                "markersize": 11.5,
                "linewidth": 2.6,
                "color": hue,
            }
            axes.plot([place(rank) for rank in group], [y] * len(group), **marks)
            for rank in group:
                ink = style.readable_on(colour) if leaves else style.INK
                pen.small(axes, (place(rank), y), str(rank), color=ink, zorder=5)
    number = sum(map(len, tracks))
    told = f"{crossing} of {number} leave a host" if crossing else "none leaves a host"
    word: dict[str, Any] = {"fontsize": style.SMALL_POINTS, "weight": "bold"}
    axes.annotate("■", (0, 1), (0, 3), color=colour, **AT_TOP, **word)
    axes.annotate(f"{name.replace('_', ' ')}: {told}", (0, 1), (11, 3), **AT_TOP, **word)


def grid_explorer(world_size: int = 64, tp: int = 8, pp: int = 4) -> VBox:
    """Choose the degrees, their order and the hosts; see who talks to whom, and across what.

    The rank that is followed is marked in every panel. A choice that is refused is answered by the
    reason, and by the degrees that would do.
    """
    from byhand.tools.explorer import Rows, explorer, menu, slider, steps

    world = steps("ranks", WORLD_SIZES, world_size)
    degrees = {"tp": tp, "cp": 1, "ep": 1, "pp": pp}
    axes = [steps(axis, DEGREES, degree) for axis, degree in degrees.items()]
    order = menu("order", ORDERS, ORDER)
    per_host = steps("per host", (1, 2, 4, 8, 16, 32), 8)
    follow = slider("follow rank", 0, 0, WORLD_SIZES[-1] - 1)
    few: dict[str, tuple] = {"ranks": (), "order": (ORDER, "dp-cp-ep-tp-pp", "pp-dp-ep-cp-tp")}
    few |= {"tp": (2, 4, 8, 16), "cp": (), "ep": (), "pp": (1, 4)}
    few |= {"per host": (4, 8), "follow rank": ()}
    rows: Rows = [[world, order], axes[:2], axes[2:], [per_host, follow]]
    return explorer(rows, draw_grid, few)


def draw_grid(
    world_size: int, order: str, tp: int, cp: int, ep: int, pp: int, per_host: int, follow: int
) -> tuple[CourseFigure, str]:
    """The rank grid, and what leaves a host.

    Raises:
        ValueError: there is no such grid; the sentence says which one change would do.
    """

    degrees = {"tp": tp, "cp": cp, "ep": ep, "pp": pp}
    try:
        grid = RankGrid(world_size, **degrees, order=order)
    except ValueError as error:
        would_do = _what_would_do(world_size, degrees, order)
        raise ValueError(f"Refused: {error}. {would_do}") from None
    worst = gpt3_leaving(grid, per_host)
    told = ", ".join(f"{name} {num_bytes_text(found)}" for name, found in worst.items())
    picture = show_grid(grid, per_host, follow=follow % world_size)
    return picture, f"{TOLD}: {told or 'nothing'}."


def gpt3_leaving(grid: RankGrid, ranks_per_host: int) -> dict[str, float]:
    """By group name, the most that a host sends to others in a step of GPT-3.

    The ranks of a tp group share out what goes to the next stage, or back.
    """
    rows = {"micro_batch": 1, "num_micro_batches": max(1, GPT3_SEQUENCES // grid.dp)}
    sent = transformer_bytes(grid, **GPT3, **rows, scatter_gather=True)
    leaving = bytes_leaving(grid, ranks_per_host, sent)
    found = {name: float(each.max()) for name, each in leaving.items() if each.max()}
    return {"dp" if name == "dp-cp" and grid.cp == 1 else name: n for name, n in found.items()}


def _what_would_do(world_size: int, degrees: dict[str, int], order: str) -> str:
    allowed = {axis: [] for axis in degrees}
    for axis, degree in ((axis, degree) for axis in degrees for degree in DEGREES):
        with suppress(ValueError):
            RankGrid(world_size, **{**degrees, axis: degree}, order=order)
            allowed[axis].append(str(degree))
    told = "; ".join(f"{axis} {', '.join(found)}" for axis, found in allowed.items() if found)
    return f"One change would do: {told}." if told else "No one degree mends it."
