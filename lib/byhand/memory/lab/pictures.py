"""What lecture 15 draws: see byhand.memory.lab."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from byhand.figures import pen, style
from byhand.figures.cells import Cell, cells
from byhand.figures.columns import BEATEN, Bar, columns
from byhand.figures.mountain import ON_TOP, Held, mountain
from byhand.memory.lab import Profile, Technique, frontier


def mountains(profiles: dict[str, Profile], title: str) -> Figure:
    """What a rank held over a step, a panel for each."""
    held = {name: Held(one.samples, one.state, one.phases) for name, one in profiles.items()}
    return mountain(held, title)


STATE = style.STATE_COLOURS["weights"]
SENT, MOVED, IDLE = style.OP_COLOURS["all_reduce"], "#ddcc77", style.COMMUNICATION
WORK = "#aa4466"


def techniques_picture(found: Mapping[str, Technique], title: str) -> Figure:
    """A row for each, from the fullest on; strong: those that no other beats in all three."""
    first = next(iter(found.values()))
    rows = {}
    for name, one in sorted(found.items(), key=lambda item: -item[1].peak):
        memory = [(one.between, STATE), (one.peak - one.between, ON_TOP)]
        busy, whole = (value / first.operations for value in (one.operations, one.work))
        rows[name] = (
            Bar(memory, f"{one.peak / 1e6:.1f}"),
            Bar([(busy, WORK), (whole - busy, IDLE)], f"{whole:.2f}"),
            Bar([(one.sent, SENT), (one.moved, MOVED)], f"{(one.sent + one.moved) / 1e6:.1f}"),
        )
    key: dict[str, object] = {
        "between steps": STATE,
        "in a step": ON_TOP,
        "work": WORK,
        "idle": IDLE,
    }
    key |= {"to ranks": SENT, "to files": MOVED, "pale: beaten": style.tint(STATE, BEATEN)}
    headings = "MB held at most", "work, times dp's", "MB moved"
    return columns(rows, headings, title, key, frontier(found))


FORMATS = {  # bits of sign, exponent and fraction
    "float32": (1, 8, 23),
    "bfloat16": (1, 8, 7),
    "float16": (1, 5, 10),
}
BITS = {"sign": style.FAINT, "exponent": style.RANK_COLOURS[1], "fraction": style.COMPUTE}


def formats_picture(title: str) -> Figure:
    """The bits of each format: exponents give range, fractions give digits."""
    filled = []
    for row, bits in enumerate(FORMATS.values()):
        colours = [BITS[kind] for kind, count in zip(BITS, bits, strict=True) for _ in range(count)]
        filled += [Cell(row, column, [colour]) for column, colour in enumerate(colours)]
    with style.plot(1.75, title) as (figure, axes):
        cells(axes, list(FORMATS), 32, filled)
        pen.key(axes, BITS)
    return figure
