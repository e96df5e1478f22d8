"""A tiny GPT on real ranks in every layout, for lecture 12: its bytes, its loss, its time.

For its time, each half of a block also *sleeps* as long as a slow device would compute: a rank
that sleeps takes no core, so eight ranks run at full speed on two. Messages, gradients and losses
are real.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.communication_cost import AlphaBeta, cost
from byhand.gpt import GPT, gpt_layers, next_token_loss
from byhand.hybrid_parallel import GROUPS, HybridParallel, chunks_of
from byhand.hybrid_parallel_cost import SCALARS, Machine, Prediction, Sizes, predict, sent_bytes
from byhand.measure import time_call
from byhand.mlp import MLP
from byhand.optimizers import AdamW
from byhand.pipeline_schedules import Schedule, one_forward_one_backward
from byhand.process_groups import groups_for_this_rank
from byhand.rank_groups import ORDER, rank_groups
from byhand.runtime import Event, Run, VirtualNetwork, launch
from byhand.transformer import Residual

Batches = list[tuple[Tensor, Tensor]]  # (tokens, the tokens that follow)
ROWS = 2  # of a micro-batch


@dataclass(frozen=True)
class Layout:
    """How many ways each axis shares out the ranks, and in which order they are numbered."""

    dp: int
    tp: int
    pp: int
    order: str = ORDER

    def __str__(self) -> str:
        return f"dp {self.dp} · tp {self.tp} · pp {self.pp}"

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self.dp * self.tp * self.pp

    @property
    def groups(self) -> Mapping[str, list[list[int]]]:
        """Lists of ranks by name."""
        return rank_groups(self.world_size, tp=self.tp, pp=self.pp, order=self.order)

    def schedule(self, num_sequences: int) -> Schedule:
        """1F1B, in micro-batches of ROWS sequences."""
        return one_forward_one_backward(self.pp, max(1, num_sequences // self.dp // ROWS))


def layouts(world_size: int, order: str = ORDER) -> list[Layout]:
    """Every way to write the number of ranks as dp × tp × pp."""
    divisors = [d for d in range(1, world_size + 1) if world_size % d == 0]
    pairs = [(tp, pp) for tp in divisors for pp in divisors if world_size % (tp * pp) == 0]
    return [Layout(world_size // tp // pp, tp, pp, order) for tp, pp in pairs]


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
    weights: GPT, layout: Layout, num_sequences: int, optimizer: Any = AdamW, seconds: float = 0.0
) -> HybridParallel:
    """This rank's part; with `seconds`, of half a block for a sequence on one rank, it sleeps."""
    groups = groups_for_this_rank(layout.groups, GROUPS)
    costs = [0.0, *[1.0] * (2 * len(weights.blocks)), 0.0, 0.0]  # halves of blocks, shared equally
    chunks = chunks_of(weights, groups, costs=costs)
    if seconds:
        for chunk in chunks:
            chunk.layers = [
                Sleepy([layer], seconds / layout.tp) if isinstance(layer, Residual) else layer
                for layer in chunk.layers
            ]
    return HybridParallel(chunks, groups, layout.schedule(num_sequences), optimizer)


def train(weights: GPT, layout: Layout, batches: Batches, lr: float = 3e-3) -> Run:
    """Each rank's result: the global loss of every step."""
    return launch(_train, layout.world_size, (weights, layout, batches, lr))


def _train(
    rank: int, world_size: int, weights: GPT, layout: Layout, batches: Batches, lr: float
) -> list[float]:
    model = model_on_rank(weights, layout, len(batches[0][0]), partial(AdamW, lr=lr))
    return [float(model.step(x, targets).loss) for x, targets in batches]


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


def bytes_of_a_step(weights: GPT, layout: Layout, batches: Batches) -> tuple[dict, dict]:
    """What all ranks together send in the last of these steps, by group: predicted, counted."""
    run = launch(_marked, layout.world_size, (weights, layout, batches))
    begun, counted = Counter(), Counter()
    for event in run.ledger.events:
        begun[event.rank] += event.op == "barrier"
        if begun[event.rank] == len(batches) and event.sent_bytes:
            counted[group_of(event, layout.groups)] += event.sent_bytes
    sizes = sizes_of(weights)
    predicted = sent_bytes(sizes, layout.dp, layout.tp, layout.pp, len(batches[0][0]))
    return predicted, {name: counted[name] for name in predicted}


def _marked(
    rank: int, world_size: int, weights: GPT, layout: Layout, batches: Batches
) -> list[float]:
    model = model_on_rank(weights, layout, len(batches[0][0]))
    losses = []
    for x, targets in batches:
        dist.barrier()  # sends nothing, and tells one step from the next in the ledger
        losses.append(float(model.step(x, targets).loss))
    return losses


def group_of(event: Event, groups: Mapping[str, list[list[int]]]) -> str:
    """The name of the group that an event of a step belongs to."""
    if event.op == "send":
        return "pp"
    if event.shape == ():
        return SCALARS
    return next(n for n in ("tp", "dp", "embedding") if list(event.group) in groups[n])


@dataclass(frozen=True)
class Timed:
    """A layout's step: the median seconds, their quartiles, and what was predicted."""

    seconds: float
    quartiles: tuple[float, float]
    predicted: Prediction

    @property
    def idle_fraction(self) -> float:
        """The share of the measured step in which a rank neither computes nor sleeps for it."""
        return 1 - self.predicted.computing / self.seconds


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


def time_layout(
    weights: GPT,
    layout: Layout,
    batch: tuple[Tensor, Tensor],
    machine: Machine,
    network: VirtualNetwork | None = None,
    repetitions: int = 3,
) -> Timed:
    """The time of a step whose halves of blocks take `machine.forward`, measured and predicted."""
    args = (weights, layout, batch, machine.forward, repetitions)
    timing = launch(_time_steps, layout.world_size, args, network=network).results[0]
    num_sequences = len(batch[0])
    schedule = layout.schedule(num_sequences)
    predicted = predict(sizes_of(weights), layout.groups, machine, schedule, num_sequences)
    return Timed(timing.median, timing.quartiles, predicted)


def _time_steps(
    rank: int,
    world_size: int,
    weights: GPT,
    layout: Layout,
    batch: tuple[Tensor, Tensor],
    seconds: float,
    repetitions: int,
) -> Any:
    model = model_on_rank(weights, layout, len(batch[0]), seconds=seconds)
    return time_call(lambda: model.step(*batch), repetitions, warm_up=1)
