"""What lecture 07 draws and watches: a block cut by hand, a layer, and a step whose products sleep.

T tokens, D features, H hidden features; every rank has x and grad_y whole, and ends with y and
grad_x whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from byhand.model.layer import Layer
from byhand.runtime import Event, Run
from byhand.tensor_parallel.layers import TensorParallelMLP
from byhand.tools.asleep import stretches

if TYPE_CHECKING:  # ranks import this module
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL_INCHES, DIGIT_POINTS = 0.42, 12


class Numbers(NamedTuple):
    """A matrix to draw with its numbers; `by` says whose they are.

    by: "columns" or "rows" (cut that way, in rank order), a rank (all of it is that rank's) or None
    (on every rank).
    """

    name: str
    placement: str
    values: Tensor
    by: str | int | None = None

    def colour(self, row: int, column: int, num_ranks: int) -> str:
        """The colour of one number: its rank's, or grey."""
        from byhand.figures import style

        if self.by is None:
            return style.FAINT
        if isinstance(self.by, int):
            return style.rank_colour(self.by)
        index = row if self.by == "rows" else column
        length = self.values.shape[0 if self.by == "rows" else 1]
        return style.rank_colour(index * num_ranks // length)


def column_picture(x: Tensor, first: Tensor) -> Figure:
    """x Aᵀ = h on two ranks, number by number."""
    terms: list[Numbers | str] = [
        Numbers("x", "replicated", x),
        "·",
        Numbers("Aᵀ", "sharded", first.T, "columns"),
        "=",
        Numbers("h", "sharded", x @ first.T, "columns"),
    ]
    return numbers_picture(terms, "By column: each rank computes its own features of h")


def row_picture(hidden: Tensor, second: Tensor) -> Figure:
    """relu(h) Bᵀ = y on two ranks: a term from each, and their sum."""
    pairs = zip(hidden.chunk(2, dim=1), second.chunk(2, dim=1), strict=True)
    mine, theirs = (h @ B.T for h, B in pairs)
    terms: list[Numbers | str] = [
        Numbers("relu(h)", "sharded", hidden, "columns"),
        "·",
        Numbers("Bᵀ", "sharded", second.T, "rows"),
        *_sum_of_terms("y", mine, theirs),
    ]
    return numbers_picture(terms, "By row: each rank computes a term of y, and the terms are added")


def backward_picture(grad_hidden: Tensor, first: Tensor) -> Figure:
    """grad_h A = grad_x on two ranks: a term from each, and their sum."""
    mine, theirs = (g @ A for g, A in zip(grad_hidden.chunk(2, 1), first.chunk(2), strict=True))
    terms: list[Numbers | str] = [
        Numbers("grad_h", "sharded", grad_hidden, "columns"),
        "·",
        Numbers("A", "sharded", first, "rows"),
        *_sum_of_terms("grad_x", mine, theirs),
    ]
    return numbers_picture(terms, "Backward, the column layer ends in a sum")


def _sum_of_terms(name: str, mine: Tensor, theirs: Tensor) -> list[Numbers | str]:
    return [
        "=",
        Numbers("rank 0's", "term", mine, 0),
        "+",
        Numbers("rank 1's", "term", theirs, 1),
        "=",
        Numbers(name, "replicated", mine + theirs),
    ]


def numbers_picture(terms: Sequence[Numbers | str], title: str, num_ranks: int = 2) -> Figure:
    """Matrices in a row, each number in its rank's colour, their names and placements below."""
    from byhand.figures import pen, style

    tall = CELL_INCHES * max(len(term.values) for term in terms if isinstance(term, Numbers))
    with style.drawing(tall + 1.0, title) as (figure, axes):
        middle, left = 0.5 + tall / 2, 0.15
        for term in terms:
            if isinstance(term, str):
                axes.text(left, middle, term, va="center", fontsize=DIGIT_POINTS)
                left += 0.25
                continue
            wide = CELL_INCHES * term.values.shape[1]
            _draw_numbers(
                axes, term, (left, middle - CELL_INCHES * len(term.values) / 2), num_ranks
            )
            label, place = f"{term.name}\n{term.placement}", (left + wide / 2, 0.55 + tall)
            pen.small(axes, place, label, va="top", linespacing=1.25, fontsize=style.TEXT_POINTS)
            left += wide + 0.1
    return figure


def _draw_numbers(axes: Axes, matrix: Numbers, corner: tuple[float, float], num_ranks: int) -> None:
    from byhand.figures import pen, style

    size, (left, top) = (CELL_INCHES, CELL_INCHES), corner
    for row, numbers in enumerate(matrix.values.tolist()):
        for column, number in enumerate(numbers):
            colour = matrix.colour(row, column, num_ranks)
            at = left + column * CELL_INCHES, top + row * CELL_INCHES
            pen.box(axes, at, size, colour, style.PAPER, 1.5)
            text = f"{number:.0f}".replace("-", "−")
            look = {"fontsize": DIGIT_POINTS, "color": style.readable_on(colour)}
            pen.small(axes, (at[0] + CELL_INCHES / 2, at[1] + CELL_INCHES / 2), text, **look)


def layer_picture(num_ranks: int) -> Figure:
    """A transformer layer with f and g, forward and backward."""
    from byhand.figures.block import TENSOR, block_flow

    return block_flow(TENSOR, num_ranks, "A transformer layer: two all-reduces each way")


def attention_picture(num_ranks: int) -> Figure:
    """Queries, keys and values by column, heads, the output by row."""
    from byhand.figures import shard_picture

    term = "y[T × D] in partial, all-reduce →, y[T × D]"
    heads = [f"{2 * rank} {2 * rank + 1}" for rank in range(num_ranks)]
    lines = {
        "Queries, keys, values": (
            "x[T × D], ·, qkvᵀ[D × 3D] in columns, =, q k v[T × 3D] in columns"
        ),
        "Each head alone, then the output layer": (
            f"heads[T × D] in columns, ·, outᵀ[D × D] in rows, =, {term}"
        ),
    }
    inches, thirds = {"T": 0.55, "D": 0.75, "3D": 2.2}, {"3D": ("queries", "keys", "values")}
    title = "Attention is column, heads, row: nothing is sent before its end"
    return shard_picture(lines, inches, num_ranks, title, thirds, heads)


def seconds_of(run: Run) -> float:
    """How long rank 0's fastest step took; each step begins with a barrier."""
    begin, end, _ = _fastest_step(run)
    return end - begin


def _fastest_step(run: Run) -> tuple[float, float, list[Event]]:
    """Its begin, its end, and its all-reduces: the barrier of the next step is no part of it."""
    steps = []
    for begin, end, calls in stretches(run)[1:]:
        sums = [call for call in calls if call.op == "all_reduce"]
        steps.append((begin, calls[-1].start if len(calls) > len(sums) else end, sums))
    return min(steps, key=lambda step: step[1] - step[0])


def steps_picture(runs: Sequence[Run], product: float, title: str) -> Figure:
    """Rank 0's fastest step in each run: products asleep, and all-reduces that travel meanwhile."""
    from byhand.figures import style
    from byhand.figures.lanes import LANES, Bar, Panel, over_time

    key = {
        "forward": style.COMPUTE,
        "backward": LANES["backward"][0],
        "gradient of A": "#c98a2b",
        "all-reduce": style.COMMUNICATION,
    }
    bars = []
    for row, run in enumerate(runs):
        begin, end, (y, grad_x) = _fastest_step(run)
        last = grad_x.start + product / run.world_size
        spans = (begin, y.start), (y.end, grad_x.start), (grad_x.start, last)
        sums = [(y.start, y.end, "y"), (grad_x.start, min(grad_x.end, end), "grad_x")]
        for (start, stop), colour in zip(spans, key.values(), strict=False):
            bars.append(Bar(row, start - begin, stop - begin, colour, "", -0.4, 0.4))
        for start, stop, name in sums if run.world_size > 1 else ():
            bar = Bar(row, start - begin, stop - begin, key["all-reduce"], name, 0.05, 0.3)
            bars.append(bar)
    rows = [f"{run.world_size} ranks" if run.world_size > 1 else "1 rank" for run in runs]
    return over_time([Panel(rows, bars)], title, key, row_inches=0.72)


def split_block(
    rank: int, world_size: int, weights: Sequence[tuple[Tensor, Tensor]], x: Tensor
) -> tuple[Tensor, float]:
    """y of the split block, and the share of the weights' numbers that this rank holds."""
    block = TensorParallelMLP(weights)
    y, _ = block.forward(x)
    held, whole = block.parameters(), [tensor for pair in weights for tensor in pair]
    return y, sum(t.numel() for t in held) / sum(t.numel() for t in whole)


def step(model: Layer, x: Tensor, grad_y: Tensor) -> tuple[Tensor, Tensor]:
    """y, and the gradient of x."""
    y, saved = model.forward(x)
    return y, model.backward(grad_y, saved)


def apart(mine: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    """The largest difference of a number in `mine` from that in `right`."""
    pairs = zip(mine, right, strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def torch_block(weights: Sequence[tuple[Tensor, Tensor]]) -> torch.nn.Sequential:
    """torch's own linear, ReLU, linear, with these (weight, bias) pairs."""
    first, second = (torch.nn.Linear(w.shape[1], w.shape[0], dtype=w.dtype) for w, _ in weights)
    for layer, (weight, bias) in zip((first, second), weights, strict=True):
        layer.weight.data, layer.bias.data = weight.clone(), bias.clone()
    return torch.nn.Sequential(first, torch.nn.ReLU(), second)
