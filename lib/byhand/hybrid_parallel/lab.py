"""A tiny GPT on real ranks in every layout, for lecture 12: its bytes, its loss, its time.

For its time, each half of a block also *sleeps* as long as a slow device would compute: see
byhand.tools.asleep. Messages, gradients and losses are real. All layouts take their steps in one
launch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch import Tensor

from byhand.communication_cost.timing import Timing, take_turns
from byhand.hybrid_parallel.cluster import by_degrees, bytes_held, degrees, fastest
from byhand.hybrid_parallel.cost import SCALARS
from byhand.hybrid_parallel.layouts import Layout, schedule_of
from byhand.hybrid_parallel.published import PUBLISHED
from byhand.hybrid_parallel.step import GROUPS, HybridParallel, chunks_of
from byhand.model.gpt import GPT, gpt_layers, next_token_loss
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.training import train_alone
from byhand.model.transformer import Residual
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import Event, VirtualNetwork, launch
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import stretches

if TYPE_CHECKING:  # ranks import this module
    import ipywidgets

    from byhand.figures.style import CourseFigure

Batches = list[tuple[Tensor, Tensor]]  # of model.text
BYTES_OF = "tp", "pp", "dp", "embedding", SCALARS


class Sleepy(Residual):
    """Half a block that also sleeps: `seconds` a sequence forward, twice that backward."""

    seconds = 0.0

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x -> y; saves what the layers save."""
        time.sleep(len(x) * self.seconds)
        return super().forward(x)

    def backward(self, grad_y: Tensor, saved: list[Any]) -> Tensor:
        """grad_y -> grad_x."""
        time.sleep(2 * len(grad_y) * self.seconds)
        return super().backward(grad_y, saved)


def model_on_rank(weights: GPT, layout: Layout, num_sequences: int) -> HybridParallel:
    """This rank's part, in new process groups: its halves of blocks can sleep, each stage has as
    many of them."""
    groups = groups_for_this_rank(layout.groups, GROUPS)
    costs = [0.0, *[1.0] * (2 * len(weights.blocks)), 0.0, 0.0]
    parts = replace(tensor_parallel_parts(groups["tp"]), residual=Sleepy)
    chunks = chunks_of(weights, groups, costs=costs, parts=parts)
    schedule, row_shape = schedule_of(layout, num_sequences), weights.positions.shape
    return HybridParallel(chunks, groups, schedule, row_shape)


def train_on_one_device(weights: GPT, batches: Batches, lr: float = 3e-3) -> list[float]:
    """The same without any parallelism."""
    model = MLP(gpt_layers(weights))
    optimizer = AdamW(model.parameters(), lr=lr)
    return train_alone(model, optimizer, batches, next_token_loss, max_norm=1.0)


def group_of(event: Event, groups: Mapping[str, list[list[int]]]) -> str:
    """The name of the group that an event of a step belongs to."""
    if event.op == "send":
        return "pp"
    if event.shape == ():
        return SCALARS
    return next(n for n in ("tp", "dp", "embedding") if list(event.group) in groups[n])


def count_bytes(
    weights: GPT, layouts: Sequence[Layout], batch: tuple[Tensor, Tensor]
) -> dict[Layout, dict[str, float]]:
    """What all ranks together send in a step under each layout, by group: from the ledger."""

    def on_rank(rank: int, world_size: int) -> None:
        """A barrier and a step under each layout."""
        for layout in layouts:
            model = model_on_rank(weights, layout, len(batch[0]))
            dist.barrier()  # sends nothing: in the ledger it divides the layouts' steps
            model.step(*batch)

    run = launch(on_rank, layouts[0].num_ranks, deadline=300)
    found = {layout: dict.fromkeys(BYTES_OF, 0.0) for layout in layouts}
    for rank in range(run.world_size):
        for layout, (_, _, calls) in zip(layouts, stretches(run, rank)[1:], strict=True):
            for call in calls:
                if call.sent_bytes:
                    found[layout][group_of(call, layout.groups)] += call.sent_bytes
    return found


@dataclass(frozen=True)
class Steps:
    """A layout's steps: whole ones, and those whose blocks do not sleep: `software`."""

    whole: Timing
    software: Timing | None = None


def time_layouts(
    weights: GPT,
    layouts: Sequence[Layout],
    batch: tuple[Tensor, Tensor],
    seconds: float,
    network: VirtualNetwork | None = None,
    repetitions: int = 3,
) -> dict[Layout, Steps]:
    """The time of a step under each layout, with halves of blocks that sleep, and without.

    They take turns, so that a machine busy with something else slows both. seconds: of half a
    block for one sequence on one rank. On a network, whose messages take time in both, only whole
    steps are timed.
    """

    def on_rank(rank: int, world_size: int) -> list[Steps]:
        """The steps of each layout in turn: the same on all ranks."""
        steps = []
        for layout in layouts:
            model = model_on_rank(weights, layout, len(batch[0]))
            model.step(*batch)  # connects: not timed
            awake = partial(step_asleep, model, 0.0, batch)
            asleep = partial(step_asleep, model, seconds / layout.tp, batch)
            steps_of = {"whole": asleep} if network else {"software": awake, "whole": asleep}
            found = take_turns(steps_of, repetitions, warm_up=0)
            steps.append(Steps(**found))
        return steps

    run = launch(on_rank, layouts[0].num_ranks, network=network, deadline=300)
    return dict(zip(layouts, run.results[0], strict=True))


def step_asleep(model: HybridParallel, seconds: float, batch: tuple[Tensor, Tensor]) -> None:
    """One step in which each half of a block sleeps for that long, a sequence."""
    for chunk in model.pipeline.chunks:
        for layer in chunk.layers:
            if isinstance(layer, Sleepy):
                layer.seconds = seconds
    model.step(*batch)


def layout_explorer(links_per_host: int = 8) -> ipywidgets.VBox:
    """Choose a published model, the links of its hosts and its GPUs' memory; see the best layouts.

    Predicted by byhand.hybrid_parallel.cluster.
    """
    from byhand.tools.explorer import explorer, steps

    model, link = (
        steps("model", list(PUBLISHED), "1008 B"),
        steps("link GB/s", [1, 5, 25, 50, 400], 25),
    )
    links = steps("links a host", [1, 2, 4, 8], links_per_host)
    return explorer([[model, link], [links, steps("memory GB", [40, 80, 141], 80)]], draw_layouts)


def draw_layouts(
    name: str, gigabytes_per_second: float, links_per_host: int, gigabytes: float
) -> tuple[CourseFigure, str]:
    """The ten fastest layouts, each with its best micro-batch, and a sentence on the first."""
    from byhand.figures import layout_seconds

    published = PUBLISHED[name]
    num_ranks, num_sequences = published.layout.num_ranks, published.num_sequences
    links = {"between": 1e9 * gigabytes_per_second, "links_per_host": links_per_host}
    machine = replace(published.machine, memory=1e9 * gigabytes, **links)
    found = by_degrees(fastest(published.model, machine, num_ranks, num_sequences))
    ten = {str(degrees(at)): parts for at, parts in list(found.items())[:10]}
    first, parts = next(iter(found.items()))
    full = bytes_held(published.model, first, num_sequences) / 1e9
    took = sum(parts.values())
    text = (
        f"{name} parameters on {num_ranks} GPUs: {degrees(first)}, in micro-batches of "
        f"{first.rows}, takes {took:.2f} s and {full:.0f} of {gigabytes:.0f} GB; a rank of the "
        f"slowest stage idles {parts['idle'] / took:.0%} of the step."
    )
    title = f"{degrees(first)} is predicted fastest; the run had {published.layout}"
    return layout_seconds({at: (shown(parts), None) for at, parts in ten.items()}, title), text


def shown(parts: Mapping[str, float]) -> tuple[float, ...]:
    """Seconds in the order in which layout_seconds draws them; no software."""
    return (*(parts[name] for name in ("computing", "tp", "idle", "sums")), 0.0)
