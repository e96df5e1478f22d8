"""A tiny GPT on real ranks in every layout, for lecture 12: its bytes, its loss, its time.

For its time, each half of a block also *sleeps* as long as a slow device would compute: a rank
that sleeps takes no core, so eight ranks run at full speed on two. Messages, gradients and losses
are real. All layouts take their steps in one launch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.communication_cost import AlphaBeta, cost
from byhand.communication_cost.timing import Timing, time_call
from byhand.hybrid_parallel.cost import SCALARS, Sizes
from byhand.hybrid_parallel.layouts import Layout, fastest_layouts
from byhand.hybrid_parallel.step import GROUPS, HybridParallel, chunks_of
from byhand.model.gpt import GPT, gpt_layers, next_token_loss
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.training import train_alone
from byhand.model.transformer import Residual
from byhand.rank_groups import rank_groups
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import Event, Run, VirtualNetwork, launch

if TYPE_CHECKING:  # ranks import this module
    import ipywidgets

    from byhand.figures.style import CourseFigure

Batches = list[tuple[Tensor, Tensor]]  # of model.text
BYTES_OF = "tp", "pp", "dp", "embedding", SCALARS


def sizes_of(weights: GPT) -> Sizes:
    """What the formulas need to know of a model."""
    shape = (*weights.table.shape[:1], *weights.positions.shape, weights.num_heads)
    return Sizes(*shape, len(weights.blocks), weights.table.element_size())


class Sleepy(MLP):
    """Layers that also sleep: `seconds` a sequence forward, twice that backward."""

    def __init__(self, layers: list[Any], seconds: float):
        super().__init__(layers)
        self.seconds = seconds

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x -> y; saves what the layers save."""
        time.sleep(len(x) * self.seconds)
        return super().forward(x)

    def backward(self, grad_y: Tensor, saved: list[Any]) -> Tensor:
        """grad_y -> grad_x."""
        time.sleep(2 * len(grad_y) * self.seconds)
        return super().backward(grad_y, saved)


def model_on_rank(
    weights: GPT, layout: Layout, num_sequences: int, optimizer: Any = AdamW
) -> HybridParallel:
    """This rank's part, in new process groups."""
    groups = groups_for_this_rank(layout.groups, GROUPS)
    costs = [0.0, *[1.0] * (2 * len(weights.blocks)), 0.0, 0.0]  # halves of blocks, shared equally
    chunks = chunks_of(weights, groups, costs=costs)
    return HybridParallel(chunks, groups, layout.schedule(num_sequences), optimizer)


def slow_down(model: HybridParallel, seconds: float) -> None:
    """From now on each half of a block on this rank sleeps for that long, a sequence."""
    for chunk in model.pipeline.chunks:
        chunk.layers = [
            Sleepy([layer], seconds) if isinstance(layer, Residual) else layer
            for layer in chunk.layers
        ]


def train(
    weights: GPT,
    layout: Layout,
    batches: Batches,
    change: Callable[[HybridParallel], None] = lambda model: None,
    lr: float = 3e-3,
) -> Run:
    """Each rank's result: the global loss of every step, and its copy of the table, or None.

    change: what to do to each rank's model before the first step.
    """

    def on_rank(rank: int, world_size: int) -> tuple[list[float], Tensor | None]:
        model = model_on_rank(weights, layout, len(batches[0][0]), partial(AdamW, lr=lr))
        change(model)
        losses = [float(model.step(x, targets).loss) for x, targets in batches]
        tables = [p for p in model.parameters() if p.shape == weights.table.shape]
        return losses, tables[0] if tables else None

    return launch(on_rank, layout.world_size)


def train_on_one_device(weights: GPT, batches: Batches, lr: float = 3e-3) -> list[float]:
    """The same without any parallelism."""
    model = MLP(gpt_layers(weights))
    optimizer = AdamW(model.parameters(), lr=lr)
    return train_alone(model, optimizer, batches, next_token_loss, max_norm=1.0)


def group_of(event: Event, groups: Mapping[str, list[list[int]]]) -> str:
    """The name of the group that an event of a step belongs to."""
    if event.op == "send":
        return "shapes" if event.dtype == "int64" else "pp"
    if event.shape == ():
        return SCALARS
    return next(n for n in ("tp", "dp", "embedding") if list(event.group) in groups[n])


def count_bytes(
    weights: GPT, layouts: Sequence[Layout], batch: tuple[Tensor, Tensor]
) -> dict[Layout, dict[str, float]]:
    """What all ranks together send in a step under each layout, by group: from the ledger.

    Not counted: the few numbers that tell a pipeline its shapes, in its first step only.
    """

    def on_rank(rank: int, world_size: int) -> None:
        for layout in layouts:
            model = model_on_rank(weights, layout, len(batch[0]))
            dist.barrier()  # sends nothing: in the ledger it divides the layouts' steps
            model.step(*batch)

    run = launch(on_rank, layouts[0].world_size, deadline=300)
    counted, barriers = [Counter() for _ in layouts], Counter()
    for event in run.ledger.events:
        barriers[event.rank] += event.op == "barrier"
        if event.sent_bytes:
            number = barriers[event.rank] - 1
            counted[number][group_of(event, layouts[number].groups)] += event.sent_bytes
    pairs = zip(layouts, counted, strict=True)
    return {layout: {name: found[name] for name in BYTES_OF} for layout, found in pairs}


def time_layouts(
    weights: GPT,
    layouts: Sequence[Layout],
    batch: tuple[Tensor, Tensor],
    seconds: float,
    network: VirtualNetwork | None = None,
    repetitions: int = 3,
) -> dict[Layout, Timing]:
    """The time of a step under each layout, whose halves of blocks sleep.

    seconds: of half a block for one sequence on one rank; see byhand.hybrid_parallel.cost.Machine.
    """

    def on_rank(rank: int, world_size: int) -> list[Timing]:
        timings = []
        for layout in layouts:
            model = model_on_rank(weights, layout, len(batch[0]))
            model.step(*batch)  # connects: not timed, and at full speed
            slow_down(model, seconds / layout.tp)
            timings.append(time_call(lambda m=model: m.step(*batch), repetitions, warm_up=0))
        return timings

    run = launch(on_rank, layouts[0].world_size, network=network, deadline=300)
    return dict(zip(layouts, run.results[0], strict=True))


def measure_lines(world_size: int) -> dict[int, AlphaBeta]:
    """By group size: alpha and beta of an all-reduce in all such groups at once, on this machine.

    Each from two sizes. Eight ranks on two cores wait for a core as well as for each other: that
    is in alpha.
    """
    from byhand.communication_cost.fit import least_squares  # ranks need not pay for scipy

    group_sizes = [n for n in range(2, world_size + 1) if world_size % n == 0]
    few_and_many = (1 << 10, 1 << 18)

    def on_rank(rank: int, world_size: int) -> list[list[float]]:
        found = []
        for num_ranks in group_sizes:
            group = groups_for_this_rank(rank_groups(world_size, tp=num_ranks), ["tp"])["tp"]
            tensors = [torch.zeros(num_bytes // 4) for num_bytes in few_and_many]
            calls = [partial(dist.all_reduce, tensor, group=group) for tensor in tensors]
            found.append([time_call(call, 9).median for call in calls])
        return found

    run = launch(on_rank, world_size)
    return {
        n: least_squares([cost("all_reduce", n, num_bytes) for num_bytes in few_and_many], seconds)
        for n, seconds in zip(group_sizes, run.results[0], strict=True)
    }


def layout_explorer(world_size: int = 64, gigabytes_per_second: float = 25) -> ipywidgets.VBox:
    """Choose ranks, ranks per host, the host's link and the batch; see the ten best layouts.

    A GPT of 1.3 billion parameters, predicted: memory is not looked at.
    """
    import ipywidgets

    from byhand.tools.explorer import explorer

    choices = {
        "ranks": ([8, 16, 32, 64, 128], world_size),
        "per host": ([1, 2, 4, 8, 16], 8),
        "link GB/s": ([1, 5, 25, 100, 400], gigabytes_per_second),
        "sequences": ([64, 256, 512], 256),
    }
    sliders = [
        ipywidgets.SelectionSlider(
            options=options, value=value, description=name, continuous_update=False
        )
        for name, (options, value) in choices.items()
    ]
    return explorer([sliders[:2], sliders[2:]], draw_layouts)


def draw_layouts(
    world_size: int, ranks_per_host: int, gigabytes_per_second: float, num_sequences: int
) -> tuple[CourseFigure, str]:
    """The ten fastest layouts, and a sentence on the first."""
    from byhand.figures import layout_seconds

    between = 1e9 * gigabytes_per_second
    best = fastest_layouts(world_size, ranks_per_host, between, num_sequences)
    name, first = best[0]
    idle = f"{first.idle_fraction:.0%} of the step in the pipeline"
    text = f"With {name} a rank idles {idle}."
    return layout_seconds({name: (p.parts, None) for name, p in best}), text
