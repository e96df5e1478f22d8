"""Ways to split a sequence, run, watched and drawn for lecture 13.

Values, bytes and memory come from real attention; time from one that sleeps: see asleep.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from byhand.context_parallel.blocks import Grads
from byhand.context_parallel.cost import imbalance, sent_bytes
from byhand.context_parallel.gathered import gathered_attention, gathered_attention_backward
from byhand.context_parallel.gpt import (
    CONTEXT_GROUPS,
    ContextHybrid,
    SharedEmbedding,
    context_parallel_parts,
)
from byhand.context_parallel.heads import (
    to_heads,
    ulysses_attention,
    ulysses_attention_backward,
)
from byhand.context_parallel.places import CONTIGUOUS, ZIGZAG, chunks, positions
from byhand.context_parallel.ring import (
    Homeward,
    ring_attention,
    ring_attention_backward,
    share,
)
from byhand.hybrid_parallel import chunks_of
from byhand.model.gpt import GPT
from byhand.model.optimizers import AdamW
from byhand.model.shards import Group
from byhand.pipeline_schedules import one_forward_one_backward
from byhand.rank_groups import rank_groups
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import Run, launch
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import sent_each_way, sum_of

if TYPE_CHECKING:  # ranks import this module
    from matplotlib.figure import Figure

    from byhand.figures.attention import Tile
    from byhand.figures.style import CourseFigure

NAMES = {
    "ring": "ring",
    "gathered": "gather",
    "ulysses": "Ulysses",
}


def random_inputs(num_positions: int, num_heads: int = 8, **look: Any) -> list[Tensor]:
    """q, k, v and grad_y of a whole sequence, [1, num_heads, num_positions, 8] each."""
    generator = torch.Generator().manual_seed(0)
    return list(torch.randn(4, 1, num_heads, num_positions, 8, generator=generator, **look))


def code_of(function: Callable) -> str:
    """A function's lines, without its docstring and the types in its head."""
    source = textwrap.dedent(inspect.getsource(function))
    head = ast.parse(source).body[0]
    assert isinstance(head, ast.FunctionDef)
    body = source.splitlines()[head.body[1].lineno - 1 :]  # body[0] is the docstring
    for arg in head.args.args:
        arg.annotation = None
    head.returns, head.body = None, [ast.Pass()]
    return "\n".join([ast.unparse(head).splitlines()[0], *body])


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


def run_attention(way: Way, world_size: int, inputs: Sequence[Tensor]) -> Run:
    """Causal attention, forward and backward on fresh ranks; results[rank] is y and the gradients.

    inputs: q, k, v, grad_y of the whole sequence. A barrier stands between forward and backward.
    """

    def on_rank(rank: int, world_size: int, *whole: Tensor) -> list[Tensor]:
        """y, grad_q, grad_k, grad_v."""
        q, k, v, grad_y = (share(tensor, 2, layout=way.layout) for tensor in whole)
        y, saved = way.forward(q, k, v)
        dist.barrier()
        return [y, *way.backward(grad_y, saved)]

    return launch(on_rank, world_size, tuple(inputs))


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


def furthest(run: Run, inputs: Sequence[Tensor], layout: str = ZIGZAG) -> float:
    """The largest difference of a run's results from torch's autograd on one device.

    run.results: by rank y, or y and its gradients, of the positions that it has in this layout.
    """
    leaves = [tensor.clone().requires_grad_() for tensor in inputs[:3]]
    q, k, v = leaves
    y = scaled_dot_product_attention(q, k, v, is_causal=True)
    whole, far = [y.detach(), *torch.autograd.grad(y, leaves, inputs[3])], 0.0
    for rank, mine in enumerate(run.results):
        places = positions(inputs[0].shape[2], rank, len(run.results), layout)
        pairs = zip(mine, whole, strict=False)
        far = max(far, *((a - b[:, :, places]).abs().max().item() for a, b in pairs))
    return far


# A GPT, and what one can get wrong in it

MISTAKES = "positions from 0", "targets after the cut"


class FromZero(SharedEmbedding):
    """The first mistake: every rank counts its own positions."""

    def places(self, length: int) -> Tensor:
        return torch.arange(length)


def train(
    world_size: int, weights: GPT, batches: Sequence[tuple[Tensor, Tensor]], mistake: str = ""
) -> list[float]:
    """The losses of a GPT that so many ranks share by position, as it is or with a mistake."""
    if mistake == MISTAKES[1]:  # each of 2n chunks makes its targets of its own tokens
        shape = -1, weights.positions.shape[0] // (2 * world_size)
        batches = [(x, x.unflatten(1, shape).roll(-1, 2).flatten(1)) for x, _ in batches]

    def on_rank(rank: int, world_size: int) -> list[float]:
        """This rank's losses."""
        names = rank_groups(world_size, cp=world_size)
        groups: dict[str, Group] = {**groups_for_this_rank(names, CONTEXT_GROUPS)}
        parts = context_parallel_parts(tensor_parallel_parts(groups["tp"]), groups["cp"])
        if mistake == MISTAKES[0]:
            parts = replace(parts, embedding=partial(FromZero, group=groups["cp"]))
        chunks, schedule = chunks_of(weights, groups, parts=parts), one_forward_one_backward(1, 1)
        positions, features = weights.positions.shape
        optimizer = partial(AdamW, lr=5e-3)
        model = ContextHybrid(chunks, groups, schedule, (positions, features), optimizer)
        return [float(model.step(x, targets).loss) for x, targets in batches]

    return launch(on_rank, world_size).results[0]


# Who passes, holds and computes what


class Held(NamedTuple):
    """What a rank holds in a round: whose it is, what is written there, and whether it is sent."""

    owner: int
    text: str
    leaves: bool
    strength: float = 1.0


def by_round(held: Sequence[Sequence[Held]], names: Sequence[str], title: str) -> CourseFigure:
    """What each rank holds, a row, in each round, a column; an arrow to the next rank's."""
    from byhand.figures import pen, style

    n, step = len(held), 1.6  # of a column's width, to the next one
    with style.plot(0.75 + 0.36 * n, title) as (figure, axes):
        pen.rows(axes, pen.ranks(n))
        axes.set(xlim=(0, step * (len(names) - 1) + 1))
        for rank, row in enumerate(held):
            for number, (owner, text, leaves, strength) in enumerate(row):
                colour, left = style.rank_colour(owner), number * step
                tinted = style.tint(colour, strength)
                pen.named_box(axes, (left, rank - 0.4), (1, 0.8), text, tinted)
                if leaves:
                    ends = (left + 1, rank), (left + step, (rank + 1) % n)
                    pen.arrow(axes, *ends, colour)
        axes.set_xticks([number * step + 0.5 for number in range(len(names))], names)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(bottom=False)
    return figure


def keys_travel(met: Sequence[Sequence[int]]) -> CourseFigure:
    """Whose block each rank works with, round by round: met[rank] are their owners."""
    n = len(met)
    rounds = [f"round {number}" for number in range(n)]
    held = [
        [Held(owner, f"block {owner}", number < n - 1) for number, owner in enumerate(owners)]
        for owners in met
    ]
    order = ", ".join(map(str, met[0]))
    title = f"In {n} rounds every rank meets every block, rank 0 in the order {order}"
    return by_round(held, rounds, title)


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


def map_layouts(world_size: int) -> Figure:
    """Both layouts, beside each other."""
    from byhand.figures.attention import attention_map

    panels = {f"{layout} shards": tiles_of(world_size, layout) for layout in (CONTIGUOUS, ZIGZAG)}
    most = imbalance(world_size, CONTIGUOUS)
    title = f"Contiguous: the last rank has {most:.2f} times the average. Zigzag: all the same"
    return attention_map(panels, title)


def way_home(world_size: int) -> CourseFigure:
    """By rank and round, whose gradient sum a rank holds, how many terms are in it; its trips.

    A rank's own term, of round 0, is pale, and stays.
    """

    def on_rank(rank: int, world_size: int) -> list[int]:
        """How many terms this rank's sum has, round by round."""
        home, terms = Homeward(), []
        for _ in range(world_size):
            term = torch.ones(1)
            home.add(term)  # adds to it what came
            terms.append(int(term))
        return [*terms, int(home.arrived())]

    def holds(rank: int, number: int, terms: int) -> Held:
        text = {0: "own", n: f"{terms - 1} + own"}.get(number, str(terms))
        return Held((rank - number) % n, text, 0 < number < n, 1.0 if number else 0.3)

    n = world_size
    held = [
        [holds(rank, number, terms) for number, terms in enumerate(row)]
        for rank, row in enumerate(launch(on_rank, n).results)
    ]
    names = [*(f"round {number}" for number in range(n)), "at home"]
    title = f"A sum starts on its owner's neighbour, and makes {n - 1} trips"
    return by_round(held, names, title)


def heads_picture(world_size: int, num_heads: int = 8) -> CourseFigure:
    """Who holds which positions of which heads, before and after Ulysses' first all-to-all."""
    from byhand.figures import pen, style
    from byhand.figures.cells import Cell, cells

    def on_rank(rank: int, world_size: int) -> list[list[int]]:
        """What it holds, by number: head times n, plus position."""
        numbers = torch.arange(num_heads * world_size).view(1, num_heads, world_size, 1)
        mine = share(numbers, 2, layout=CONTIGUOUS)
        return [held.flatten().tolist() for held in (mine, to_heads(mine))]

    held = launch(on_rank, world_size).results
    title = "An all-to-all: from some positions of all heads to all positions of some"
    shape = {"width_ratios": (1, 0.3, 1)}
    with style.plot(0.9 + 0.2 * num_heads, title, 1, 3, **shape) as (figure, grids):
        for axes, moment, heading in zip(grids[::2], (0, 1), ("before", "after"), strict=True):
            filled = [
                Cell(
                    number // world_size,
                    number % world_size,
                    [style.rank_colour(rank)],
                    str(rank),
                )
                for rank, moments in enumerate(held)
                for number in moments[moment]
            ]
            names = [f"head {head}" * (moment == 0) for head in range(num_heads)]
            cells(axes, names, world_size, filled, heading, points=10)
            axes.set_xlabel("positions")
        style.bare(grids[1])
        pen.arrow(grids[1], (0, 0.5), (1, 0.5))
        pen.small(grids[1], (0.5, 0.54), "all-to-all", va="bottom")
    return figure


def seconds_bars(
    lengths: Sequence[int],
    perfect: Sequence[float],
    predicted: Mapping[str, Sequence[float]],
    measured: Mapping[str, Sequence[float]],
) -> Figure:
    """Each way's seconds over a perfect split's: predicted (pale) above measured, by length."""
    from byhand.figures import style
    from byhand.figures.bars import Line, stacked

    def line(kind: str, times: float, colour: Any) -> Line:
        return Line([("", times, colour)], f"{times:.1f} × {kind}")

    def rows(number: int) -> dict[str, list[Line]]:
        """The bars of one length, two for each way."""
        best = perfect[number]
        return {
            NAMES[way]: [
                line("predicted", predicted[way][number] / best, style.tint("#0072b2", 0.4)),
                line("measured", measured[way][number] / best, "#0072b2"),
            ]
            for way in measured
        }

    panels = {
        f"{length} positions: 1 × is {style.seconds_text(best)}": rows(number)
        for number, (length, best) in enumerate(zip(lengths, perfect, strict=True))
    }
    label = "time, in multiples of a rank's work"
    most = 1.3 * max(took / perfect[0] for took, *_ in [*measured.values(), *predicted.values()])
    return stacked(panels, f"Fastest: {wins(lengths, measured)}", label, {}, most)


def wins(lengths: Sequence[int], seconds_by_way: Mapping[str, Sequence[float]]) -> str:
    """Which way is fastest at each length, in words."""
    names = [
        NAMES[min(seconds_by_way, key=lambda way: seconds_by_way[way][number])]
        for number in range(len(lengths))
    ]
    told = [f"{name} at {length}" for name, length in zip(names, lengths, strict=True)]
    return f"{', '.join(told)} positions"
