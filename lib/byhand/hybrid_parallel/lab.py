"""A tiny GPT on real ranks, for lecture 12: what each layout sends, and what a broken joint does.

Messages, gradients and losses are real. All layouts take their steps in one launch.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch import Tensor

from byhand.hybrid_parallel.cost import SCALARS
from byhand.hybrid_parallel.layouts import Layout, schedule_of
from byhand.hybrid_parallel.step import GROUPS, HybridParallel, chunks_of
from byhand.model.gpt import GPT, gpt_layers, gpt_weights, next_token_loss
from byhand.model.layer import PARTIAL, REPLICATED
from byhand.model.mlp import MLP
from byhand.model.optimizers import SGD, AdamW
from byhand.model.shards import shard
from byhand.model.training import train_alone
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import Event, launch
from byhand.tools.asleep import stretches

if TYPE_CHECKING:  # ranks import this module
    from byhand.figures.style import CourseFigure

Batches = list[tuple[Tensor, Tensor]]  # of model.text
BYTES_OF = "tp", "pp", "dp", "embedding", SCALARS


def model_on_rank(weights: GPT, layout: Layout, num_sequences: int) -> HybridParallel:
    """This rank's part, in new process groups: each stage has as many halves of blocks."""
    groups = groups_for_this_rank(layout.groups, GROUPS)
    schedule, row_shape = schedule_of(layout, num_sequences), weights.positions.shape
    costs = [0.0, *[1.0] * (2 * len(weights.blocks)), 0.0, 0.0]
    return HybridParallel(chunks_of(weights, groups, costs=costs), groups, schedule, row_shape)


def train_on_one_device(weights: GPT, batches: Batches, lr: float = 3e-3) -> list[float]:
    """The same without any parallelism."""
    model = MLP(gpt_layers(weights))
    optimizer = AdamW(model.parameters(), lr=lr)
    return train_alone(model, optimizer, batches, next_token_loss, 1.0)


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


# Five joints, each left out or done wrongly


def own_rows(model: HybridParallel) -> None:
    """Each rank of a tp group has loaded rows of its own, and nobody shares them."""
    place = dist.get_rank(model.groups["tp"])
    model.rows = lambda batch: shard(batch.roll(place, 0), 0, model.groups["dp"])


def divided_again(model: HybridParallel) -> None:
    """Gradients of a mean over the global batch are divided by the number of micro-batches."""

    def loss(*given: Any) -> tuple[Tensor, Tensor]:
        value, gradient = next_token_loss(*given)
        return value, gradient / model.pipeline.num_micro_batches

    model.loss = loss


def partial_alone(model: HybridParallel) -> None:
    """Partial gradients stay a term each: they count as replicated."""
    found = model.gradients.placements
    model.gradients.placements = [REPLICATED if how == PARTIAL else how for how in found]


def tables_alone(model: HybridParallel) -> None:
    """The table's two copies are never summed."""
    model.gradients.groups = {**model.groups, "embedding": None}


def norm_alone(model: HybridParallel) -> None:
    """The squares of the norm are summed over dp, and not over tp and pp."""
    model.gradients.groups = {**model.groups, "tp-pp": model.groups["dp"]}


BROKEN: dict[str, Callable[[HybridParallel], None]] = {
    "rows are not shared over tp": own_rows,
    "divided by m once more": divided_again,
    "partial ones are not summed": partial_alone,
    "the tables are not summed": tables_alone,
    "the norm over the wrong group": norm_alone,
}


SGD_ONCE = partial(SGD, lr=0.3)
LIMITS = 0.5, math.inf  # of the gradient's norm in that one step: clipped, not clipped


@dataclass(frozen=True)
class Trained:
    """A run's losses, and how far a step of SGD ends from one device's: the furthest weight, as a
    share of the furthest that a right step moves one. With clipped gradients, and without.
    """

    losses: list[float]
    clipped: float
    not_clipped: float


def train_broken(weights: GPT, layout: Layout, batches: Batches) -> dict[str, Trained]:
    """Steps of AdamW, and one of SGD, with no joint broken ("right") and with each in turn."""
    expected = {limit: after_one_step(weights, batches, limit) for limit in LIMITS}
    before, *after = (MLP(gpt_layers(each)).parameters() for each in (weights, *expected.values()))
    moved = [furthest(each, before) for each in after]

    def on_rank(rank: int, world_size: int) -> dict[str, Trained]:
        """What chunks_of gives this rank of one device's weights, its own must be."""
        groups, found = groups_for_this_rank(layout.groups, GROUPS), {}
        right = {limit: chunks_of(each, groups)[0].parameters() for limit, each in expected.items()}
        for name, change in {"right": lambda model: None, **BROKEN}.items():
            model = changed(groups, change, partial(AdamW, lr=3e-3), 1.0)
            losses = [float(model.step(*batch).loss) for batch in batches]
            far = []
            for limit, parameters in right.items():
                model = changed(groups, change, SGD_ONCE, limit)
                model.step(*batches[0])
                far.append(furthest(model.parameters(), parameters))
            found[name] = Trained(losses, *far)
        return found

    def changed(
        groups: Mapping[str, Any], change: Callable[..., None], optimizer: Any, limit: float
    ) -> HybridParallel:
        """A model with the same weights, a joint of which is changed."""
        chunks, schedule = chunks_of(weights, groups), schedule_of(layout, len(batches[0][0]))
        shape = weights.positions.shape
        model = HybridParallel(chunks, groups, schedule, shape, optimizer, max_norm=limit)
        change(model)
        return model

    results = launch(on_rank, layout.num_ranks, deadline=300).results
    told = {}
    for name, one in results[0].items():
        clipped = max(found[name].clipped for found in results) / moved[0]
        not_clipped = max(found[name].not_clipped for found in results) / moved[1]
        told[name] = replace(one, clipped=clipped, not_clipped=not_clipped)
    return told


def furthest(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """The largest difference of two lists of weights."""
    return max(float((a - b).abs().max()) for a, b in zip(some, others, strict=True))


def after_one_step(weights: GPT, batches: Batches, max_norm: float) -> GPT:
    """The weights of one device after a step of SGD on the first batch."""
    model = MLP(gpt_layers(weights))
    optimizer = SGD_ONCE(model.parameters())
    train_alone(model, optimizer, batches[:1], next_token_loss, max_norm)
    return gpt_weights(model.layers, weights.num_heads)


def code_of(function: Callable[..., Any]) -> str:
    """A function's lines, without its docstring and what it stands in."""
    source = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n *""".*?"""', "", source, count=1, flags=re.DOTALL).rstrip()


# Pictures


def walls(seconds: Mapping[int, tuple[float, float]], title: str) -> CourseFigure:
    """A step's seconds by GPUs, with ZeRO-3 alone and with all three ways together."""
    from byhand.figures import style

    looks = ("ZeRO-3 alone", style.axis_colour("dp"), -0.2), ("dp, tp, pp", style.COMPUTE, 0.2)
    with style.plot(2.7, title) as (figure, axes):
        for x, pair in enumerate(seconds.values()):
            for value, (name, colour, aside) in zip(pair, looks, strict=True):
                axes.bar(x + aside, value, 0.38, color=colour)
                label = f"{name}\n{value:.0f} s" if x == 0 else f"{value:.0f} s"
                look = {"ha": "center", "va": "bottom", "weight": "bold", "color": colour}
                if x == 0:  # the names are wider than the bars
                    look["ha"], aside = ("right", -0.03) if aside < 0 else ("left", 0.03)
                axes.text(x + aside, value + 1, label, fontsize=style.TEXT_POINTS, **look)
        axes.set_xticks(range(len(seconds)), [f"{gpus} GPUs" for gpus in seconds])
        axes.set_title("seconds of a step", loc="left", fontsize=style.TEXT_POINTS)
        axes.set(yticks=[], ylim=(0, 1.3 * max(map(max, seconds.values()))))
    return figure


def run_ends(losses: Mapping[str, Sequence[float]], title: str) -> CourseFigure:
    """Runs that one cannot tell apart: all their losses, and beside them the last ones, large."""
    from byhand.figures import style
    from byhand.figures.curves import COLOURS

    colours = (*COLOURS[:5], style.INK)
    with style.plot(2.9, title, 1, 2, width_ratios=(2, 3)) as (figure, (whole, ends)):
        for x, (name, values) in enumerate(losses.items()):
            look = {"color": colours[x], "marker": "o"}
            whole.plot(range(1, len(values) + 1), values, linewidth=1.5, markersize=3, **look)
            ends.plot(x, values[-1], markersize=8, **look)
            place = {"textcoords": "offset points", "ha": "center", "weight": "bold"}
            text = ends.annotate(name, (x, values[-1]), (0, 8), **place)
            text.set(color=style.legible(colours[x]))
            text.set_bbox({"fc": style.PAPER, "ec": "none", "pad": 1})
        whole.set(xlabel="step", ylabel="loss", xticks=range(2, 1 + len(values), 2))
        ends.set(xlabel=f"the same after step {len(values)}, enlarged", xticks=[])
        ends.margins(x=0.12, y=0.2)
        for axes in (whole, ends):
            axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
            axes.set_axisbelow(True)
    return figure
