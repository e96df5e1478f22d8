"""What lecture 11 counts between hosts, and lets one drag."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.rank_groups.grid import AXES, ORDER, RankGrid
from byhand.rank_groups.traffic import bytes_leaving, transformer_bytes
from byhand.runtime import Run
from byhand.words import counted

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from ipywidgets import VBox

    from byhand.figures.style import CourseFigure

WORLD_SIZES = (16, 32, 64, 96, 128, 256, 512, 1024, 3072, 4096, 8192, 16384)
DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
ORDERS = (
    *(ORDER, "tp-cp-ep-pp-dp", "tp-pp-dp-cp-ep", "dp-cp-ep-tp-pp"),
    *("pp-tp-cp-ep-dp", "pp-dp-ep-cp-tp", "tp-dp-pp"),
)
GPT3 = {"num_layers": 96, "hidden": 12288, "sequence": 2048}
GPT3_STEP = {"micro_batch": 1, "num_micro_batches": 16}
TOLD = "A step of GPT-3, 16 micro-batches: the most that a host sends to others is"
START_SECONDS = 600  # in which a plain process has imported torch, however busy the machine is

PLAIN = """
import os, threading
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


def plainly(
    function: Callable, world_size: int, *others: Callable, seconds: float = 3.0
) -> list[str]:
    """What plain processes, without the course's watch, say of function(rank, world_size).

    Each says what the function returned, the name of its error, or that it still waits after so
    many seconds, when it is stopped. others: functions that this one calls. All travel by source,
    and find torch, dist and rank_groups.
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


def _start(script: str) -> subprocess.Popen:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
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


def grid_explorer(world_size: int = 64, tp: int = 8, pp: int = 4) -> VBox:
    """Choose the degrees, their order and the hosts; see who talks to whom, and across what.

    The rank that is followed is marked in every panel. A choice that is refused is answered by the
    reason, and by the degrees that would do.
    """
    from byhand.tools.explorer import explorer, menu, slider, steps

    world = steps("ranks", WORLD_SIZES, world_size)
    degrees = {"tp": tp, "cp": 1, "ep": 1, "pp": pp}
    degrees = [steps(axis, DEGREES, degree) for axis, degree in degrees.items()]
    order = menu("order", ORDERS, ORDER)
    per_host = steps("per host", (1, 2, 4, 8, 16, 32), 8)
    follow = slider("follow rank", 0, 0, WORLD_SIZES[-1] - 1)
    return explorer([[world, order], degrees[:2], degrees[2:], [per_host, follow]], draw_grid)


def draw_grid(
    world_size: int, order: str, tp: int, cp: int, ep: int, pp: int, per_host: int, follow: int
) -> tuple[CourseFigure, str]:
    """The rank grid, and what leaves a host.

    Raises:
        ValueError: there is no such grid; the sentence says which one change would do.
    """
    from byhand.figures.style import num_bytes_text

    degrees = {"tp": tp, "cp": cp, "ep": ep, "pp": pp}
    try:
        grid = RankGrid(world_size, **degrees, order=order)
    except ValueError as error:
        would_do = _what_would_do(world_size, degrees, order)
        raise ValueError(f"Refused: {error}. {would_do}") from None
    leaving = bytes_leaving(grid, per_host, transformer_bytes(grid, **GPT3, **GPT3_STEP))
    worst = {name: found.max() for name, found in leaving.items() if found.max()}
    told = ", ".join(f"{name} {num_bytes_text(found)}" for name, found in worst.items())
    picture = show_grid(grid, per_host, follow=follow % world_size)
    return picture, f"{TOLD}: {told or 'nothing'}."


def _what_would_do(world_size: int, degrees: dict[str, int], order: str) -> str:
    allowed = {axis: [] for axis in degrees}
    for axis, degree in ((axis, degree) for axis in degrees for degree in DEGREES):
        with suppress(ValueError):
            RankGrid(world_size, **{**degrees, axis: degree}, order=order)
            allowed[axis].append(str(degree))
    told = "; ".join(f"{axis} {', '.join(found)}" for axis, found in allowed.items() if found)
    return f"One change would do: {told}." if told else "No one degree mends it."
