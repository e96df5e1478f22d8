"""Ways to split a sequence, run, watched and drawn for lecture 13.

Values, bytes and memory come from real attention; time from one that sleeps: see asleep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.communication_cost.model import AlphaBeta
from byhand.context_parallel.blocks import Grads
from byhand.context_parallel.cost import hides_from, seconds, sent_bytes
from byhand.context_parallel.gathered import gathered_attention, gathered_attention_backward
from byhand.context_parallel.heads import ulysses_attention, ulysses_attention_backward
from byhand.context_parallel.places import CONTIGUOUS, ZIGZAG, chunks
from byhand.context_parallel.ring import ring_attention, ring_attention_backward, share
from byhand.runtime import Run, launch
from byhand.tools.asleep import sent_each_way, sum_of

if TYPE_CHECKING:  # ranks import this module
    import ipywidgets

    from byhand.figures.attention import Tile
    from byhand.figures.style import CourseFigure

NAMES = {
    "ring": "ring attention",
    "gathered": "gather keys, values",
    "ulysses": "Ulysses",
}


def random_inputs(num_positions: int, num_heads: int = 8, **look) -> list[Tensor]:
    """q, k, v and grad_y of a whole sequence, [1, num_heads, num_positions, 8] each."""
    generator = torch.Generator().manual_seed(0)
    return list(torch.randn(4, 1, num_heads, num_positions, 8, generator=generator, **look))


class Way(NamedTuple):
    """A way to attend: its forward and backward, and the layout in which they take shares."""

    forward: Callable[..., tuple[Tensor, Any]]
    backward: Callable[..., Grads]
    layout: str = ZIGZAG


IN_USE = {
    "ring": Way(ring_attention, ring_attention_backward),
    "gathered": Way(gathered_attention, gathered_attention_backward),
    "ulysses": Way(ulysses_attention, ulysses_attention_backward, CONTIGUOUS),
}


def run_attention(way: Way, world_size: int, inputs: Sequence[Tensor], memory: bool = False) -> Run:
    """Causal attention, forward and backward on fresh ranks; results[rank] is y and the gradients.

    inputs: q, k, v, grad_y of the whole sequence. A barrier stands between forward and backward.
    """

    def on_rank(rank: int, world_size: int, *whole: Tensor) -> list[Tensor]:
        """y, grad_q, grad_k, grad_v."""
        q, k, v, grad_y = (share(tensor, 2, layout=way.layout) for tensor in whole)
        y, saved = way.forward(q, k, v)
        dist.barrier()
        return [y, *way.backward(grad_y, saved)]

    return launch(on_rank, world_size, tuple(inputs), memory=memory)


def compare_bytes(world_size: int) -> CourseFigure:
    """Bytes that a rank sends, predicted beside counted, in each way in use."""
    from byhand.figures import bytes_bars

    inputs = random_inputs(96, 2 * world_size)
    ledger, formula = {}, {}
    for way, functions in IN_USE.items():
        ledger[NAMES[way]] = sum_of(sent_each_way(run_attention(functions, world_size, inputs)))
        forward, backward = sent_bytes(way, world_size, inputs[1].nbytes)
        ops = {"ulysses": {"all_to_all": forward + backward}}
        ops["gathered"] = {"all_gather": 2 * forward, "reduce_scatter": backward / 2}
        formula[NAMES[way]] = ops.get(way, {"send": forward + backward})
    ring, ulysses = (sum(ledger[NAMES[way]].values()) for way in ("ring", "ulysses"))
    title = f"On {world_size} ranks Ulysses sends 1/{ring / ulysses:.3g} of the ring's bytes"
    return bytes_bars(formula, ledger, title)


def peaks(way: Way, world_size: int, lengths: Sequence[int]) -> list[float]:
    """Most bytes that a rank held at once, for each length."""
    runs = (
        run_attention(way, world_size, random_inputs(length), memory=True) for length in lengths
    )
    return [max(run.peak_bytes) for run in runs]


# Who computes what


def tiles_of(world_size: int, layout: str) -> list[Tile]:
    """Every rectangle of scores of 840 positions that is computed, by rank and round."""
    from byhand.figures.attention import Tile

    owned = [chunks(rank, world_size, layout) for rank in range(world_size)]
    length = 840 // sum(map(len, owned))

    def span(chunk: int) -> tuple[int, int]:
        return chunk * length, (chunk + 1) * length

    return [
        Tile(rank, number, span(query), span(key), query == key)
        for rank in range(world_size)
        for number in range(world_size)
        for query in owned[rank]
        for key in owned[(rank - number) % world_size]
        if key <= query
    ]


def map_layouts(world_size: int) -> CourseFigure:
    """Both layouts, beside each other."""
    from byhand.figures.attention import attention_map

    panels = {f"{layout} shares": tiles_of(world_size, layout) for layout in (CONTIGUOUS, ZIGZAG)}
    return attention_map(panels, "Who computes which scores, in which round of the ring")


# On GPUs, by formula

GPU = {"heads": 32, "size": 128, "flops": 4e14, "alpha": 1e-5}  # in two-byte numbers
LENGTHS = [1 << power for power in range(12, 21)]


def way_explorer(num_ranks: int = 8) -> ipywidgets.VBox:
    """Choose ranks, the link, and how many query heads share a key head; see which way is best."""
    from byhand.tools.explorer import explorer, steps

    link, shared = steps("link GB/s", [12.5, 50, 450], 50), steps("q heads / k", [1, 4, 8], 1)
    return explorer([[steps("ranks", [2, 4, 8, 16, 32], num_ranks), link, shared]], draw_ways)


def draw_ways(
    num_ranks: int, gigabytes_per_second: float, queries_per_key: int
) -> tuple[CourseFigure, str]:
    """How near each way comes to a perfect split's speed, by length; and a sentence."""
    from byhand.figures import curves

    rate, g = 1e9 * gigabytes_per_second, queries_per_key
    line, width = AlphaBeta(GPU["alpha"], 1 / rate), GPU["heads"] * GPU["size"]

    def speed(way: str, length: int, layout: str = ZIGZAG) -> float:
        compute = 2 * length**2 * width / GPU["flops"]
        took = seconds(way, num_ranks, compute, 2 * length * width / g, line, layout, g)
        return 100 * compute / num_ranks / took

    lines = {NAMES[way]: [speed(way, s) for s in LENGTHS] for way in IN_USE}
    lines["ring, contiguous"] = [speed("ring", s, CONTIGUOUS) for s in LENGTHS]
    start = hides_from(GPU["flops"], rate, queries_per_key=g)
    title = f"The ring's messages hide from {start:,.0f} positions a rank"
    thousands = [length // 1024 for length in LENGTHS]
    look = {"log_x": True, "from_zero": True, "widths": (2,)}
    label = "positions, in units of 1024"
    figure = curves(lines, label, "% of a perfect split's speed", title, thousands, **look)
    best = {s: max(lines, key=lambda name: lines[name][i]) for i, s in enumerate(LENGTHS)}
    told = ", ".join(f"{s // 1024} Ki: {best[s]}" for s in LENGTHS[::4])
    return figure, f"Fastest by length: {told}."
