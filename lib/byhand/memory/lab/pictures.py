"""What lecture 15 draws: see byhand.memory.lab."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from byhand.figures import pen, style
from byhand.figures.bars import Line, stacked
from byhand.figures.cells import Cell, cells
from byhand.figures.columns import Bar, columns
from byhand.figures.mountain import ON_TOP, Held, mountain
from byhand.memory.lab import Profile, Technique


def mountains(profiles: dict[str, Profile], title: str) -> Figure:
    """What a rank held over a step, a panel for each."""
    held = {name: Held(one.samples, one.state, one.phases) for name, one in profiles.items()}
    return mountain(held, title)


STATE = style.STATE_COLOURS["weights"]
SENT, MOVED, IDLE = style.OP_COLOURS["all_reduce"], "#ddcc77", style.COMMUNICATION
WORK = "#aa4466"


HALVES = {  # what a technique makes smaller
    "state": ("dp, averages offloaded", "ZeRO-1", "ZeRO-2", "ZeRO-3", "tp", "tp and sp"),
    "activations": ("dp, bf16", "dp, accumulated", "dp, recomputed", "dp, offloaded"),
    "both": ("pp", "ZeRO-3, recomputed"),
}


def techniques_picture(
    found: Mapping[str, Technique], paper: Mapping[str, float], title: str
) -> Figure:
    """A row for each found, by what it makes smaller. paper: bytes held at most, predicted."""
    rows: dict[str, tuple[Bar, ...]] = {}
    for heading, names in {"": ("dp",), **HALVES}.items():
        if heading:
            rows[f"smaller: {heading}"] = ()
        for name in filter(found.__contains__, names):
            rows[name] = _costs(found[name], paper[name], found["dp"].operations)
    key: dict[str, object] = {
        "state": STATE,
        "in a step beside it": ON_TOP,
        "work": WORK,
        **({"idle": IDLE} if any(one.work > one.operations for one in found.values()) else {}),
        "to ranks": SENT,
        "to files": MOVED,
    }
    headings = "MB held at most", "work, times dp's", "MB moved"
    return columns(rows, headings, title, key, "on paper")


def _costs(one: Technique, paper: float, operations: int) -> tuple[Bar, ...]:
    """A row's bars. paper: bytes held at most, predicted; operations: dp's."""
    memory = [(one.between, STATE), (one.peak - one.between, ON_TOP)]
    busy, whole = (value / operations for value in (one.operations, one.work))
    return (
        Bar(memory, f"{one.peak / 1e6:.1f}", paper),
        Bar([(busy, WORK), (whole - busy, IDLE)], f"{whole:.2f}"),
        Bar([(one.sent, SENT), (one.moved, MOVED)], f"{(one.sent + one.moved) / 1e6:.1f}"),
    )


def fits_picture(held: Mapping[str, Mapping[str, float]], limit: float, title: str) -> Figure:
    """A bar a row: bytes of a rank by kind; dashed: what may be filled."""
    rows = {}
    for name, kinds in held.items():
        bars = [("", each / 1e9, style.STATE_COLOURS[kind]) for kind, each in kinds.items()]
        rows[name] = [Line(bars, f"{sum(kinds.values()) / 1e9:.0f} GB")]
    key = {kind: style.STATE_COLOURS[kind] for kind in next(iter(held.values()))}
    figure = stacked({"": rows}, title, "GB of a rank (dashed: what may be filled)", key)
    (axes,) = figure.axes
    axes.axvline(limit / 1e9, color=style.INK, linewidth=1.2, linestyle=(0, (3, 2)))
    for text in axes.texts:
        if isinstance(text, Annotation) and 0.8 * limit < 1e9 * text.xy[0] < limit:
            text.xy = limit / 1e9, text.xy[1]  # beside the line, not through it
    return figure


FORMATS = {  # bits of sign, exponent and fraction
    "float32": (1, 8, 23),
    "bfloat16": (1, 8, 7),
    "float16": (1, 5, 10),
}
BITS = {
    "sign": style.FAINT,
    "exponent: how large": style.RANK_COLOURS[1],
    "fraction: which digits": style.COMPUTE,
}
WHOLE = {16: torch.int16, 32: torch.int32}  # whole numbers of so many bits


def formats_picture(number: float, title: str) -> Figure:
    """The bits of a number in each format, and which number they stand for."""
    filled, names = [], []
    for row, (name, counts) in enumerate(FORMATS.items()):
        width, value = sum(counts), torch.tensor(number, dtype=getattr(torch, name))
        bits = f"{value.view(WHOLE[width]).item() % 2**width:0{width}b}"
        pairs = zip(BITS.values(), counts, strict=True)
        colours = [colour for colour, count in pairs for _ in range(count)]
        for column, (colour, bit) in enumerate(zip(colours, bits, strict=True)):
            filled.append(Cell(row, column, [colour], bit))
        names.append(f"{name}: {value:.5f}")
    with style.plot(1.75, title) as (figure, axes):
        cells(axes, names, 32, filled)
        pen.key(axes, BITS)
    return figure
