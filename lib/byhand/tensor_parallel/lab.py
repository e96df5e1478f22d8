"""One MLP block split over ranks in three ways, run and counted, and drawn for lecture 07.

    column, then row      one all-reduce of y forward, one of grad_x backward
    gather every output   both layers by column, and each output made whole
    row, then column      the same two splits in the other order: the wide layer is what travels

D features, H hidden, T rows; every rank has x and grad_y whole, and ends with y and grad_x whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.mlp import GELU, MLP, random_weights
from byhand.runtime import Run, launch
from byhand.tensor_parallel.gathered import Gather, GatheredLinear, GatheringLinear, Slice
from byhand.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear, TensorParallelMLP
from byhand.tools.asleep import sent_each_way, sum_of

if TYPE_CHECKING:  # ranks import this module
    import ipywidgets

    from byhand.figures.style import CourseFigure

Sent = dict[str, float]  # bytes by op


SPLITS = {
    "column, then row": lambda weights: TensorParallelMLP(weights, GELU),
    "gather every output": lambda weights: MLP(
        [ColumnParallelLinear(*weights[0]), GELU(), GatheringLinear(*weights[1]), Gather()]
    ),
    "row, then column": lambda weights: MLP(
        [Slice(), RowParallelLinear(*weights[0]), GELU(), GatheredLinear(*weights[1])]
    ),
}


def run_block(
    split: str, world_size: int, num_rows: int, features: int, hidden: int, backend: str = "auto"
) -> Run:
    """One step of the block on fresh ranks; results[rank] is (y, grad_x)."""
    if split not in SPLITS:
        raise ValueError(f"no split is called {split!r}; there are {', '.join(SPLITS)}")

    def on_rank(rank: int, world_size: int) -> tuple[Tensor, Tensor]:
        """y, grad_x."""
        generator = torch.Generator().manual_seed(1)
        x, grad_y = torch.randn(2, num_rows, features, generator=generator)
        model = SPLITS[split](random_weights([features, hidden, features]))
        y, saved = model.forward(x)
        dist.barrier()  # sends nothing, and tells forward from backward in the ledger
        return y, model.backward(grad_y, saved)

    return launch(on_rank, world_size, backend=backend)


def predicted(
    split: str, world_size: int, num_rows: int, features: int, hidden: int, itemsize: int = 4
) -> dict[str, Sent]:
    """{"forward": {op: bytes that each rank sends}, "backward": ...}."""
    share = (world_size - 1) / world_size * itemsize * num_rows
    narrow, wide = features * share, hidden * share  # what an all-gather sends; an all-reduce twice
    if split == "column, then row":
        return {"forward": {"all_reduce": 2 * narrow}, "backward": {"all_reduce": 2 * narrow}}
    if split == "gather every output":
        backward = {"all_reduce": 2 * narrow, "reduce_scatter": wide}
        return {"forward": {"all_gather": narrow + wide}, "backward": backward}
    both = {"all_reduce": 2 * wide, "all_gather": narrow}
    return {"forward": both, "backward": dict(both)}


def compare_splits(
    world_size: int, num_rows: int, features: int, hidden: int, backend: str = "auto"
) -> CourseFigure:
    """Bytes that a rank sends in one step, predicted beside counted, of all three splits."""
    from byhand.figures import bytes_bars

    sizes = (world_size, num_rows, features, hidden)
    runs = {split: run_block(split, *sizes, backend=backend) for split in SPLITS}
    formula = {split: sum_of(predicted(split, *sizes)) for split in SPLITS}
    ledger = {split: sum_of(sent_each_way(run)) for split, run in runs.items()}
    best, gathered = (sum(ledger[split].values()) for split in list(SPLITS)[:2])
    times = f"{gathered / best:.3g} times" if best else "as little"
    title = f"Gathering every output sends {times} as much as column, then row"
    return bytes_bars(formula, ledger, title)


def linear_picture(num_ranks: int) -> CourseFigure:
    """A linear layer, split by column and by row."""
    from byhand.figures import shard_picture

    term = "y[T × O] in partial, all-reduce →, y[T × O]"
    lines = {
        "Column: all of x in, a shard of y out": (
            "x[T × I], ·, Wᵀ[I × O] in columns, =, y[T × O] in columns"
        ),
        "Row: a shard of x in, a term of y out": (
            f"x[T × I] in columns, ·, Wᵀ[I × O] in rows, =, {term}"
        ),
    }
    title = "By column nothing is sent; by row, a sum at the end"
    return shard_picture(lines, {"T": 0.55, "I": 0.75, "O": 0.95}, num_ranks, title)


def block_picture(num_ranks: int) -> CourseFigure:
    """Column, GELU, row."""
    from byhand.figures import shard_picture

    hidden, term = "h[T × H] in columns", "y[T × D] in partial, all-reduce →, y[T × D]"
    lines = {
        "Column": f"x[T × D], ·, Aᵀ[D × H] in columns, =, {hidden}",
        "Row, on gelu(h)": f"{hidden}, ·, Bᵀ[H × D] in rows, =, {term}",
    }
    title = "Between the two layers nothing is sent"
    return shard_picture(lines, {"T": 0.55, "D": 0.7, "H": 1.5}, num_ranks, title)


def layer_picture(num_ranks: int) -> CourseFigure:
    """A transformer layer with f and g, forward and backward."""
    from byhand.figures.block import TENSOR, block_flow

    return block_flow(TENSOR, num_ranks, "A transformer layer: two all-reduces each way")


def attention_picture(num_ranks: int) -> CourseFigure:
    """Queries, keys and values by column, heads, the output by row."""
    from byhand.figures import shard_picture

    term = "y[T × D] in partial, all-reduce →, y[T × D]"
    lines = {
        "Queries, keys, values": (
            "x[T × D], ·, Wᵀ[D × 3D] in columns, =, q k v[T × 3D] in columns"
        ),
        "Each head alone, then the output layer": (
            f"mixed[T × D] in columns, ·, outᵀ[D × D] in rows, =, {term}"
        ),
    }
    inches, thirds = {"T": 0.55, "D": 0.75, "3D": 2.2}, {"3D": ("queries", "keys", "values")}
    title = "Attention is column, heads, row: nothing is sent before its end"
    return shard_picture(lines, inches, num_ranks, title, thirds)


def block_bytes(
    split: str, world_size: int, num_rows: int, features: int, hidden: int
) -> CourseFigure:
    """Bytes predicted beside bytes counted, forward and backward, of one split."""
    from byhand.figures import bytes_bars, style

    sizes = (split, world_size, num_rows, features, hidden)
    sent = sent_each_way(run_block(*sizes))
    total = sum(sum(ops.values()) for ops in sent.values())
    best = sum(sum(ops.values()) for ops in predicted(next(iter(SPLITS)), *sizes[1:]).values())
    times = f", {total / best:.2g} × the least of the three" if total > best else ""
    title = f"{split[0].upper()}{split[1:]}: {style.num_bytes_text(total)} per rank{times}"
    return bytes_bars(predicted(*sizes), sent, title)


def split_explorer(split: str = "column, then row", world_size: int = 4) -> ipywidgets.VBox:
    """Choose how an MLP block is split, and its sizes; see what each rank sends, by formula and by
    ledger.

    hidden: in multiples of the features.
    """
    from byhand.tools.explorer import explorer, menu, slider

    how = menu("split", SPLITS, split)
    rows, features = slider("rows", 32, 1, 128), slider("features", 48, 24, 240)
    hidden, ranks = slider("hidden ×", 4, 1, 8), slider("ranks", world_size, 1, 8)
    return explorer([[how, ranks], [rows, features, hidden]], draw_split)


def draw_split(
    split: str, world_size: int, num_rows: int, features: int, times: int
) -> tuple[CourseFigure, str]:
    """The bytes of one split, without words."""
    return block_bytes(split, world_size, num_rows, features, times * features), ""
