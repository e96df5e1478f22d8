"""Lecture 08's pictures that need no run."""

from __future__ import annotations

from byhand.figures import block_flow, shard_picture, style
from byhand.figures.bars import Line, stacked
from byhand.figures.block import INSIDE, SEQUENCE
from byhand.figures.style import CourseFigure
from byhand.sequence_parallel.formulas import WAYS, activation_bytes


def block_picture(num_ranks: int) -> CourseFigure:
    """The MLP: tokens gathered, column, row, tokens of the sum scattered."""
    hidden, term = "h[T × 4D] in columns", "y[T × D] in partial, reduce-scatter →"
    lines = {
        "Column, for the tokens of all ranks": (
            "x[T × D] in rows, all-gather →, x[T × D], ·, Aᵀ[D × 4D] in columns, =, " + hidden
        ),
        "Row; of the sum each rank keeps its tokens": (
            f"{hidden}, ·, Bᵀ[4D × D] in rows, =, {term}, y[T × D] in rows"
        ),
    }
    title = "What lies outside the split layers is split too"
    return shard_picture(lines, {"T": 0.72, "D": 0.6, "4D": 1.3}, num_ranks, title)


def layer_picture(num_ranks: int) -> CourseFigure:
    """Half a transformer layer with g and ḡ, forward and backward."""
    title = "Backward mirrors forward, and gathers x once more behind a product"
    return block_flow(SEQUENCE, num_ranks, title, INSIDE[1:])


def vocabulary_picture(num_ranks: int) -> CourseFigure:
    """The head and the loss: what is split, and what crosses."""
    logits, sums = "logits[T × V] in columns", "two sums[T × 2]"
    lines = {
        "Each rank has some words: their columns of Eᵀ, and of the logits": (
            "x[T × D] in rows, all-gather →, x[T × D], ·, Eᵀ[D × V] in columns, =, " + logits
        ),
        "First each token's largest logit": (
            f"{logits}, →, own maxima[T × n] in columns, all-reduce of maxima →, largest[T × 1]"
        ),
        "Then, with it subtracted, the sum of the exponentials and the target's logit": (
            f"{logits}, →, {sums} in partial, all-reduce of sums →, {sums}"
        ),
    }
    inches = {"T": 0.72, "D": 0.6, "V": 1.45, "n": 0.56, "1": 0.14, "2": 0.26}
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
    title = f"GPT-3 on {num_ranks} ranks, one sequence of {positions}: {', '.join(ends)} GB a rank"
    return stacked({"": rows}, title, "GB saved by a rank", hues, line_inches=0.34)
