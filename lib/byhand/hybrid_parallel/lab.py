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
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.communication_cost import AlphaBeta, cost
from byhand.communication_cost.timing import Timing, time_call
from byhand.hybrid_parallel.cost import SCALARS, Sizes
from byhand.hybrid_parallel.layouts import Layout
from byhand.hybrid_parallel.step import GROUPS, HybridParallel, chunks_of
from byhand.model.gpt import GPT, gpt_layers, next_token_loss
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.transformer import Residual
from byhand.rank_groups import rank_groups
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import Event, Run, VirtualNetwork, launch

Batches = list[tuple[Tensor, Tensor]]  # (tokens, the tokens that follow)
BYTES_OF = "tp", "pp", "dp", "embedding", SCALARS


def sizes_of(weights: GPT) -> Sizes:
    """What the formulas need to know of a model."""
    shape = (*weights.table.shape[:1], *weights.positions.shape, weights.num_heads)
    return Sizes(*shape, len(weights.blocks), weights.table.element_size())


def text_batches(num_steps: int, num_sequences: int, num_positions: int) -> Batches:
    """Pieces of Python's own reference, as bytes: every step's tokens and those that follow."""
    from pydoc_data.topics import topics

    text = "\n".join(topics.values()).encode("ascii", "ignore")
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(0)
    last = len(tokens) - num_positions - 1
    starts = torch.randint(last, (num_steps, num_sequences, 1), generator=generator)
    pieces = tokens[starts + torch.arange(num_positions + 1)]
    return [(piece[:, :-1], piece[:, 1:]) for piece in pieces]


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
    return launch(_train, layout.world_size, (weights, layout, batches, change, lr))


def _train(
    rank: int,
    world_size: int,
    weights: GPT,
    layout: Layout,
    batches: Batches,
    change: Callable[[HybridParallel], None],
    lr: float,
) -> tuple[list[float], Tensor | None]:
    model = model_on_rank(weights, layout, len(batches[0][0]), partial(AdamW, lr=lr))
    change(model)
    losses = [float(model.step(x, targets).loss) for x, targets in batches]
    tables = [p for p in model.parameters() if p.shape == weights.table.shape]
    return losses, tables[0] if tables else None


def train_on_one_device(weights: GPT, batches: Batches, lr: float = 3e-3) -> list[float]:
    """The same without any parallelism."""
    model = MLP(gpt_layers(weights))
    optimizer, losses = AdamW(model.parameters(), lr=lr), []
    for x, targets in batches:
        model.zero_gradients()
        logits, saved = model.forward(x)
        loss, grad = next_token_loss(logits, targets)
        model.backward_first(grad, saved)
        norm = torch.stack([g.double().square().sum() for g in model.gradients()]).sum().sqrt()
        scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        optimizer.step([gradient.mul_(scale) for gradient in model.gradients()])
        losses.append(float(loss))
    return losses


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
    run = launch(_marked_steps, layouts[0].world_size, (weights, layouts, batch), deadline=300)
    counted, barriers = [Counter() for _ in layouts], Counter()
    for event in run.ledger.events:
        barriers[event.rank] += event.op == "barrier"
        if event.sent_bytes:
            number = barriers[event.rank] - 1
            counted[number][group_of(event, layouts[number].groups)] += event.sent_bytes
    pairs = zip(layouts, counted, strict=True)
    return {layout: {name: found[name] for name in BYTES_OF} for layout, found in pairs}


def _marked_steps(
    rank: int,
    world_size: int,
    weights: GPT,
    layouts: Sequence[Layout],
    batch: tuple[Tensor, Tensor],
) -> None:
    for layout in layouts:
        model = model_on_rank(weights, layout, len(batch[0]))
        dist.barrier()  # sends nothing: in the ledger it divides the layouts' steps
        model.step(*batch)


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
    args = (weights, layouts, batch, seconds, repetitions)
    run = launch(_timed_steps, layouts[0].world_size, args, network=network, deadline=300)
    return dict(zip(layouts, run.results[0], strict=True))


def _timed_steps(
    rank: int,
    world_size: int,
    weights: GPT,
    layouts: Sequence[Layout],
    batch: tuple[Tensor, Tensor],
    seconds: float,
    repetitions: int,
) -> list[Timing]:
    timings = []
    for layout in layouts:
        model = model_on_rank(weights, layout, len(batch[0]))
        model.step(*batch)  # connects: not timed, and at full speed
        slow_down(model, seconds / layout.tp)
        timings.append(time_call(lambda m=model: m.step(*batch), repetitions, warm_up=0))
    return timings


def measure_lines(world_size: int) -> dict[int, AlphaBeta]:
    """By group size: alpha and beta of an all-reduce in all such groups at once, on this machine.

    Each from two sizes. Eight ranks on two cores wait for a core as well as for each other: that
    is in alpha.
    """
    few, many = 1 << 10, 1 << 18
    sizes = [n for n in range(2, world_size + 1) if world_size % n == 0]
    run = launch(_time_all_reduces, world_size, (sizes, (few, many)))
    lines = {}
    for num_ranks, (small, large) in zip(sizes, run.results[0], strict=True):
        one, other = (cost("all_reduce", num_ranks, n) for n in (few, many))
        beta = max(large - small, 0.0) / (other.num_bytes - one.num_bytes)
        lines[num_ranks] = AlphaBeta(max(small - beta * one.num_bytes, 0.0) / one.rounds, beta)
    return lines


def _time_all_reduces(
    rank: int, world_size: int, group_sizes: list[int], num_bytes: tuple[int, int]
) -> list[list[float]]:
    found = []
    for num_ranks in group_sizes:
        group = groups_for_this_rank(rank_groups(world_size, tp=num_ranks), ["tp"])["tp"]
        tensors = [torch.zeros(count // 4) for count in num_bytes]
        calls = [partial(dist.all_reduce, tensor, group=group) for tensor in tensors]
        found.append([time_call(call, 9).median for call in calls])
    return found
