"""Lecture 08's pictures that need no run, and its explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byhand.figures import block_flow, curves, shard_picture
from byhand.figures.block import SEQUENCE
from byhand.figures.style import CourseFigure
from byhand.sequence_parallel.formulas import WAYS, activation_bytes

if TYPE_CHECKING:
    import ipywidgets


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
    """A transformer layer with g and ḡ, forward and backward."""
    title = "Nothing replicated is saved: by feature inside, by token outside"
    return block_flow(SEQUENCE, num_ranks, title)


def vocabulary_picture(num_ranks: int) -> CourseFigure:
    """The head and the loss: what is split, and what crosses."""
    logits, sums = "logits[T × V] in columns", "three of a row[T × 3]"
    lines = {
        "Each rank has some columns of the logits": (
            "x[T × D] in rows, all-gather →, x[T × D], ·, Eᵀ[D × V] in columns, =, " + logits
        ),
        "Of each row three numbers cross: the largest, then two sums": (
            f"{logits}, →, {sums} in partial, all-reduce →, {sums}"
        ),
    }
    inches = {"T": 0.72, "D": 0.6, "V": 1.45, "3": 0.2}
    return shard_picture(lines, inches, num_ranks, "No rank ever has all scores of a token")


MODELS = {"22B": (48, 6144, 64), "175B": (96, 12288, 96), "530B": (105, 20480, 128)}
MODELS["1T"] = (128, 25600, 160)  # layers, features, heads: Korthikanti et al., table 3
RANKS = [1, 2, 4, 8, 16, 32, 64]


def activation_curves(
    model: str = "175B", positions: int = 2048, scores: bool = False
) -> CourseFigure:
    """Gigabytes that a rank saves of one sequence, over ranks; cut by token, inputs gathered twice.

    model: one of MODELS. scores: whether attention saves its scores, 5 bytes each as in the paper;
    flash attention computes them again.
    """
    layers, features, heads = MODELS[model]
    sizes = {"scores": 5.0 * heads * positions if scores else 0.0}
    lines = {
        name: [layers * activation_bytes(way, positions, features, n, **sizes) / 1e9 for n in RANKS]
        for name, way in zip(("tensor parallel", "cut by token, too"), WAYS[1::2], strict=True)
    }
    copies = 10e-9 * layers * positions * features
    lines["copies"] = [copies] * len(RANKS)
    held, split = (values[RANKS.index(8)] for values in list(lines.values())[:2])
    title = f"{model}, {positions} tokens, 8 ranks: {held:.0f} GB, of them {copies:.0f} copies"
    title += f"; by token {split:.0f}"
    look = {"log_x": True, "from_zero": True, "widths": (2,)}
    return curves(lines, "ranks", "GB a rank, of one sequence", title, RANKS, **look)


def activation_explorer() -> ipywidgets.VBox:
    """Choose a model, its sequences' length, and whether scores are kept; see what is saved."""
    import ipywidgets

    from byhand.tools.explorer import explorer, menu

    def draw(model: str, positions: int, scores: bool) -> tuple[CourseFigure, str]:
        return activation_curves(model, positions, scores), ""

    model = menu("model", MODELS, "530B")
    lengths = menu("positions", [1024 * 2**k for k in range(8)], 8192)
    scores = ipywidgets.Checkbox(value=False, description="scores are saved")
    return explorer([[model, lengths, scores]], draw)
