"""Lecture 08's pictures that need no run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from matplotlib.figure import Figure

from byhand.figures import pen, shard_picture, style
from byhand.figures.bars import Line, stacked
from byhand.figures.cells import Cell, cells
from byhand.figures.lanes import Bar, Panel, over_time
from byhand.figures.style import CourseFigure
from byhand.sequence_parallel.formulas import WAYS, activation_bytes


def block_picture(num_ranks: int) -> CourseFigure:
    """The MLP: tokens gathered, column, row, tokens of the sum scattered."""
    hidden, term = "[T × 4D] in columns", "y[T × D] in partial, reduce-scatter →"
    lines = {
        "Column, for the tokens of all ranks": (
            f"u[T × D] in rows, all-gather →, u[T × D], ·, Aᵀ[D × 4D] in columns, =, h{hidden}"
        ),
        "Row: of the sum, each rank keeps its own tokens": (
            f"GELU(h){hidden}, ·, Bᵀ[4D × D] in rows, =, {term}, y[T × D] in rows"
        ),
    }
    title = "u comes in by token, and y leaves by token"
    return shard_picture(lines, {"T": 0.72, "D": 0.6, "4D": 1.3}, num_ranks, title)


CUT = style.OP_COLOURS["broadcast"]  # what is cut by token

# What a layer keeps for each token and feature, in its order: bytes, and who has it in tp + sp.
KEPT = (
    ("norm's\ninput", 2, "token"),
    ("column's\ninput u", 2, "all"),
    ("q, k, v,\nheads", 8, "feature"),
    ("dropout's\nmask", 1, "token"),
    ("norm's\ninput", 2, "token"),
    ("column's\ninput u", 2, "all"),
    ("both sides\nof GELU", 16, "feature"),
    ("dropout's\nmask", 1, "token"),
)
SENT = {"tp": {3: "all-\nreduce", 7: "all-\nreduce"}, "tp + sp": {1: "g", 3: "ḡ", 5: "g", 7: "ḡ"}}


def layer_picture() -> CourseFigure:
    """What forward keeps through a layer, under tp and tp + sp: whole on each rank, or shared out.

    At the edge between two cells stands the message that is sent there.
    """
    looks = {"whole on every rank": style.HELD_COLOURS["copies"]}
    looks |= {"by feature": style.COMPUTE, "by token": CUT}
    whole, by_feature, by_token = looks.values()
    colours = {"token": (whole, by_token), "feature": (by_feature,) * 2, "all": (whole,) * 2}
    filled = [
        Cell(row, column, [colours[who][row]], f"{size}" + "/n" * (colours[who][row] != whole))
        for column, (_, size, who) in enumerate(KEPT)
        for row in range(2)
    ]
    title = "Cut by token: of what forward keeps, only u is still whole on every rank"
    with style.plot(2.1, title) as (figure, axes):
        cells(axes, list(SENT), len(KEPT), filled)
        for column, (name, *_) in enumerate(KEPT):
            pen.small(axes, (column + 0.5, -0.55), name, va="bottom")
        for row, messages in enumerate(SENT.values()):
            for place, name in messages.items():
                paper = {"boxstyle": "round,pad=0.2", "fc": style.PAPER, "ec": style.INK, "lw": 0.6}
                pen.small(axes, (place, row), name, va="center", bbox=paper)
        axes.set_xlabel("bytes for each token and feature; n ranks", loc="left")
        pen.key(axes, looks, 1.0, 0.36)
    return figure


# What a rank does: how long, what it computes, and what begins to travel, of which tensor. On
# eight ranks: in tp + sp, norm, dropout and residual sum take an eighth of tp's time, and an
# all-reduce takes 0.77 times as long as grad_A, as in lecture 07. With these lengths tp's forward
# is to that of tp + sp as 7.7 to 7.2, and backward as 11.9 to 11.8 (Korthikanti's table 4).
HALF: dict[str, dict[str, tuple[tuple, ...]]] = {
    "forward": {
        "tp": (
            (0.45, "norm"),
            (5, "A"),
            (2.5, "GELU"),
            (5, "B"),
            (3.84, "", "all_reduce", "y"),
            (0.86, "dropout, +"),
        ),
        "tp + sp": (
            (0.06, "norm"),
            (1.92, "", "all_gather", "u"),
            (5, "A"),
            (2.5, "GELU"),
            (5, "B"),
            (1.92, "", "reduce_scatter", "y"),
            (0.11, "dropout, +"),
        ),
    },
    "backward": {
        "tp": (
            (1.55, "dropout, +"),
            (5, "grad_B"),
            (5, "grad_y · B"),
            (2.5, "grad_h"),
            (5, "grad_u"),
            (5, "grad_A", "all_reduce", "grad_u"),
            (0.89, "norm"),
        ),
        "tp + sp": (
            (0.19, "dropout, +"),
            (1.92, "", "all_gather", "grad_y"),
            (5, "grad_B"),
            (5, "grad_y · B"),
            (2.5, "grad_h"),
            (5, "grad_u", "all_gather", "u"),
            (5, "grad_A", "reduce_scatter", "grad_u"),
            (0.11, "norm"),
        ),
    },
}
BY_TOKEN = ("norm", "dropout, +")  # what a rank does for its own tokens, where not tp
TRAVELS = {"all_reduce": 3.84, "all_gather": 1.92, "reduce_scatter": 1.92}  # how long


def half_picture() -> CourseFigure:
    """Half a layer over time, in tp and in tp + sp: what a rank computes, and what travels."""
    panels = []
    for phase, ways in HALF.items():
        bars = [bar for row, steps in enumerate(ways.values()) for bar in _bars(row, steps)]
        panels.append(Panel([*ways], bars, phase))
    key = {"products, GELU": style.COMPUTE, "norm, dropout, residual sum": CUT}
    key |= {op.replace("_", "-"): style.OP_COLOURS[op] for op in TRAVELS}
    title = "In tp + sp a rank waits longer, and its norms and dropouts take less"
    unit = "time →, drawn, not measured"
    figure = over_time(panels, title, key, unit, row_inches=0.6, ground=False)
    for axes, ways in zip(figure.axes, HALF.values(), strict=True):
        axes.set_xticks([])
        for row, steps in enumerate(ways.values()):
            for start, op, tensor in _messages(steps):  # which may be too short for its name
                pen.beside(axes, (start + TRAVELS[op], row + 0.2), tensor, 3)
    return figure


def _messages(steps: Iterable[tuple]) -> Iterator[tuple[float, str, str]]:
    """When each message begins to travel, by which collective, and of which tensor."""
    now = 0.0
    for long, _, *message in steps:
        if message:
            yield now, *message
        now += long


def _bars(row: int, steps: Iterable[tuple]) -> Iterator[Bar]:
    now = 0.0
    for long, computed, *_ in steps:
        colour = CUT if computed in BY_TOKEN else style.COMPUTE if computed else style.PAPER
        yield Bar(row, now, now + long, colour, computed or "waits", -0.38, 0.36)
        now += long
    for start, op, _ in _messages(steps):
        yield Bar(row, start, start + TRAVELS[op], style.OP_COLOURS[op], "", 0.02, 0.36)


GPT_3 = (96, 12288, 96)  # layers, features, heads
HUES: dict[str, str] = {**style.HELD_COLOURS, "scores": style.COMMUNICATION}


def kept_bars(rows: Mapping[str, Mapping[str, float]], ends: Mapping[str, str]) -> Figure:
    """What a rank keeps for each token and feature: copies, its own; `ends` behind it."""
    lines = {}
    for row, sizes in rows.items():
        bars = [((f"{kind} {n:.1f}", f"{n:.1f}"), n, HUES[kind]) for kind, n in sizes.items()]
        lines[row] = [Line(bars, ends[row])]
    first, *_, last = (sizes["copies"] + sizes["its own"] for sizes in rows.values())
    title = f"No copy is left: {last:.1f} bytes in place of {first:.1f}"
    key = {kind: HUES[kind] for kind in next(iter(rows.values()))}
    return stacked({"": lines}, title, "bytes a token and feature", key, line_inches=0.34)


def saved_bars(num_ranks: int = 8, positions: int = 2048) -> CourseFigure:
    """Gigabytes that a rank saves of one sequence of GPT-3, under each way.

    Attention's scores are 5 bytes each, as in the paper, where they have a dropout.
    """
    layers, features, heads = GPT_3

    def gigabytes(way: str, ranks: float, scores: float = 0.0) -> float:
        sizes = positions, features, ranks
        return layers * activation_bytes(way, *sizes, scores=scores) / 1e9

    rows, ends = {}, []
    ways = {"tp": ("tensor", True), "tp + sp,\ngathered twice": (WAYS[3], True)}
    ways["and scores\ncomputed again"] = WAYS[3], False
    for name, (way, scores) in ways.items():
        copies, own = gigabytes(way, float("inf")), gigabytes(way, num_ranks)
        whole = gigabytes(way, num_ranks, 5.0 * heads * positions * scores)
        sizes = dict(zip(HUES, (copies, own - copies, whole - own), strict=True))
        bars = [((f"{kind} {n:.0f}", f"{n:.0f}"), n, HUES[kind]) for kind, n in sizes.items()]
        rows[name] = [Line(bars, f"{whole:.0f} GB")]
        ends.append(f"{whole:.0f}")
    title = f"GPT-3 on {num_ranks} ranks: from {ends[0]} to {ends[-1]} GB on each"
    return stacked({"": rows}, title, "GB kept by a rank", HUES, line_inches=0.34)
