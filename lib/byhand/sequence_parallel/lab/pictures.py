"""Lecture 08's pictures that need no run."""

from __future__ import annotations

from byhand.figures import shard_picture, style
from byhand.figures.bars import Line, stacked
from byhand.figures.lanes import Bar, Panel, over_time
from byhand.figures.style import CourseFigure
from byhand.sequence_parallel.formulas import WAYS, activation_bytes


def block_picture(num_ranks: int) -> CourseFigure:
    """The MLP: tokens gathered, column, row, tokens of the sum scattered."""
    hidden, term = "h[T × 4D] in columns", "y[T × D] in partial, reduce-scatter →"
    lines = {
        "Column, for the tokens of all ranks": (
            "u[T × D] in rows, all-gather →, u[T × D], ·, Aᵀ[D × 4D] in columns, =, " + hidden
        ),
        "Row; of the sum each rank keeps its tokens": (
            f"{hidden}, ·, Bᵀ[4D × D] in rows, =, {term}, y[T × D] in rows"
        ),
    }
    title = "u comes in by token, and y leaves by token"
    return shard_picture(lines, {"T": 0.72, "D": 0.6, "4D": 1.3}, num_ranks, title)


HALF = {  # what a rank does: how long, what it computes, and what travels, of which tensor
    "forward": (
        (2, "norm"),
        (3, "", "all_gather", "u"),
        (4, "A"),
        (2, "GELU"),
        (4, "B"),
        (3, "", "reduce_scatter", "y"),
        (4, "dropout, +"),
    ),
    "backward": (
        (4, "dropout, +"),
        (3, "", "all_gather", "grad_y"),
        (4, "grad_B"),
        (4, "grad_h"),
        (2, "GELU"),
        (4, "grad_u", "all_gather", "u"),
        (4, "grad_A", "reduce_scatter", "grad_u"),
        (2, "norm"),
    ),
}


def half_picture() -> CourseFigure:
    """Half a layer, cut by token, over time: what a rank computes, and what travels."""
    bars = []
    for row, steps in enumerate(HALF.values()):
        now = 0
        for long, computed, *message in steps:
            if computed:
                bars.append(Bar(row, now, now + long, style.COMPUTE, computed, -0.38, 0.36))
            if message:
                op, what = message
                bars.append(Bar(row, now, now + 3, style.OP_COLOURS[op], what, 0.02, 0.36))
            now += long
    key = {"computed": style.COMPUTE}
    key |= {op.replace("_", "-"): style.OP_COLOURS[op] for op in ("all_gather", "reduce_scatter")}
    title = "In backward, two messages travel behind products"
    figure = over_time([Panel(list(HALF), bars)], title, key, unit="time →", row_inches=0.7)
    figure.axes[0].set_xticks([])
    return figure


def vocabulary_picture(num_ranks: int) -> CourseFigure:
    """The loss: what is split, and what crosses."""
    logits, sums = "logits[T × V] in columns", "two sums[T × 2]"
    lines = {
        "First each token's largest logit": (
            f"{logits}, →, own maxima[T × n] in columns, all-reduce of maxima →, largest[T × 1]"
        ),
        "Then, with it subtracted, the sum of the exponentials and the target's logit": (
            f"{logits}, →, {sums} in partial, all-reduce of sums →, {sums}"
        ),
    }
    inches = {"T": 0.72, "V": 1.45, "n": 0.56, "1": 0.14, "2": 0.26}
    return shard_picture(lines, inches, num_ranks, "No rank ever has all logits of a token")


GPT_3 = (96, 12288, 96)  # layers, features, heads


def saved_bars(num_ranks: int = 8, positions: int = 2048) -> CourseFigure:
    """Gigabytes that a rank saves of one sequence of GPT-3, under each way.

    Attention's scores are 5 bytes each, as in the paper, where they have a dropout.
    """
    layers, features, heads = GPT_3

    def gigabytes(way: str, ranks: float, scores: float = 0.0) -> float:
        sizes = positions, features, ranks
        return layers * activation_bytes(way, *sizes, scores=scores) / 1e9

    hues = {"copies": "#f2d49b", "its own": style.COMPUTE, "scores": style.COMMUNICATION}
    rows, ends = {}, []
    ways = {"tp": ("tensor", True), "by token": (WAYS[3], True)}
    ways["and scores\ncomputed again"] = WAYS[3], False
    for name, (way, scores) in ways.items():
        copies, own = gigabytes(way, float("inf")), gigabytes(way, num_ranks)
        whole = gigabytes(way, num_ranks, 5.0 * heads * positions * scores)
        sizes = dict(zip(hues, (copies, own - copies, whole - own), strict=True))
        bars = [(kind, size, hues[kind]) for kind, size in sizes.items()]
        rows[name] = [Line(bars, f"{whole:.0f} GB")]
        ends.append(f"{whole:.0f}")
    title = f"GPT-3 on {num_ranks} ranks: from {ends[0]} to {ends[-1]} GB on each"
    return stacked({"": rows}, title, "GB kept by a rank", hues, line_inches=0.34)
