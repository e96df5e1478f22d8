"""Stacked bars: bytes predicted and counted, a step's seconds under each layout, rows by expert."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.text import Annotation, Text

from byhand.figures import pen, style
from byhand.words import num_bytes_text

GAP = 0.3  # of a row's height, below it
PALE = 0.45  # the strength of a predicted bar's colour

Bars = Mapping[str, Mapping[str, float]]  # row: {op: bytes}
Loads = Sequence[Mapping[int, float]]  # by rank: the rows of each expert there
Layouts = Mapping[str, tuple[Sequence[float], float | None]]


class Line(NamedTuple):
    """Bars end to end, (name, length, colour) each, and the text behind them.

    Of several names, the first that fits.
    """

    bars: Sequence[tuple[str | Sequence[str], float, Any]]
    text: str


Rows = Mapping[str, Sequence[Line]]


def stacked(
    panels: Mapping[str, Rows],
    title: str,
    xlabel: str,
    key: Mapping[str, Any],
    most: float | None = None,
    line_inches: float = 0.23,
) -> style.CourseFigure:
    """A panel for each heading: rows of one or more lines, which are cut off at `most`."""
    every = [line for rows in panels.values() for lines in rows.values() for line in lines]
    most = most or max(sum(bar[1] for bar in line.bars) for line in every) or 1.0
    tall = [line_inches * (1 + GAP) * sum(map(len, rows.values())) for rows in panels.values()]
    height = 0.85 + 0.26 * bool(key) + sum(tall) + 0.3 * (len(panels) if len(panels) > 1 else 0)
    look = {"height_ratios": tall, "sharex": True, "squeeze": False}
    with style.plot(height, title, len(panels), 1, **look) as (figure, grid):
        grid[-1, 0].set(xlabel=xlabel, xlim=(0, most))
        pen.key(grid[0, 0], key)
        placed = []
        for axes, (heading, rows) in zip(grid.flat, panels.items(), strict=True):
            axes.set_title(heading, loc="left", fontsize=style.TEXT_POINTS)
            axes.tick_params(bottom=axes is grid[-1, 0])
            placed += [(axes, y, line) for y, line in _set_rows(axes, rows)]
        for axes, y, line in placed:
            end = sum(bar[1] for bar in line.bars)
            paper = {"fc": style.PAPER, "ec": "none", "pad": 0.5}  # lines do not cross it
            pen.beside(axes, (min(end, most), y), line.text, bbox=paper)
        style.settle(figure)
        for axes, y, line in placed:
            pen.stack(axes, y, 0.88, line.bars)
    return figure


def _set_rows(axes: Axes, rows: Rows) -> list[tuple[float, Line]]:
    """Names the rows; each line with its height."""
    middles, placed, top = [], [], 0.0
    for lines in rows.values():
        middles.append(top + len(lines) / 2)
        placed += [(top + number + 0.5, line) for number, line in enumerate(lines)]
        top += len(lines) * (1 + GAP)
    axes.set_yticks(middles, list(rows))
    axes.set_ylim(top - GAP / 2, -GAP / 2)
    return placed


def bytes_bars(
    predicted: Bars, counted: Bars, title: str | None = None, did: str = "sent"
) -> style.CourseFigure:
    """Two stacked bars per row, predicted (pale) above counted, one colour per collective.

    predicted and counted have the same rows, such as {"rank 0": {"all_reduce": 6000}}.
    The title, unless given, says whether the two agree; `did` what was done with the bytes.
    """
    if list(predicted) != list(counted):
        raise ValueError(f"rows differ: predicted {list(predicted)}, counted {list(counted)}")
    most = max(sum(ops.values()) for bars in (predicted, counted) for ops in bars.values())
    scales = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "bytes"))
    factor, unit = next((scale for scale in scales if most >= scale[0]), scales[-1])

    def line(row: str, bars: Bars, kind: str, strength: float) -> Line:
        """A row as predicted or as counted."""
        order = dict.fromkeys([*predicted[row], *counted[row]])  # the same in both
        ops = {op: bars[row][op] for op in order if op in bars[row]}
        both = predicted[row].keys() & counted[row].keys()  # pale is what is counted, too
        pale = {op: strength if op in both else 1.0 for op in ops}
        hues = {op: style.tint(style.wire_colour(op), pale[op]) for op in ops}
        shown = [(op.replace("_", "-"), ops[op] / factor, hues[op]) for op in ops]
        return Line(shown, f"{num_bytes_text(sum(ops.values()))} {kind}")

    rows = {
        name.replace("_", "-"): [
            line(name, predicted, "predicted", PALE),
            line(name, counted, "counted", 1.0),
        ]
        for name in counted
    }
    title = finding(predicted, counted) if title is None else title
    return stacked({"": rows}, title, f"{unit} {did}", {})


def finding(predicted: Bars, counted: Bars) -> str:
    """Whether counted bytes are the predicted ones, or the row where they differ most."""
    got, want = ({row: sum(bars[row].values()) for row in counted} for bars in (counted, predicted))
    row = max(counted, key=lambda row: abs(got[row] - want[row]))
    if got[row] == want[row]:
        return "Counted and predicted agree to the byte"
    return f"{row}: {got[row]:,.0f} bytes counted, {want[row]:,.0f} predicted"


def busy_bars(
    rows: Mapping[str, Sequence[tuple[bool, float]]], title: str, xlabel: str, most: float
) -> style.CourseFigure:
    """A bar per row, in turn busy and idle for so long; cut off at `most`, its length behind it."""
    colours = {"busy": style.COMMUNICATION, "idle": style.PAPER}
    lines = {}
    for row, spans in rows.items():
        bars, end = [], 0.0
        for busy, together in groupby(spans, key=itemgetter(0)):
            name, start = "busy" if busy else "idle", end
            end += sum(length for _, length in together)
            bars.append((name, max(0.0, min(end, most) - start), colours[name]))
        lines[row] = [Line(bars, f"{end:.2f}")]
    return stacked({"": lines}, title, xlabel, colours, most)


LAYOUT_COLOURS = {
    "computes": style.COMPUTE,
    "all-reduces over tp": style.AXIS_COLOURS["tp"],
    "idles": style.PAPER,
    "sums gradients": style.AXIS_COLOURS["dp"],
    "software": style.FAINT,
    "measured": style.COMMUNICATION,
}


def layout_seconds(layouts: Layouts, title: str | None = None) -> style.CourseFigure:
    """Two bars per layout: predicted, in parts, above measured.

    layouts: by name, (seconds of each of LAYOUT_COLOURS but the last, measured seconds); without
    measured ones, None, there is one bar. The title, unless given, names the fastest, and how far
    off predictions were. A bar more than twice as long as those of all other layouts is cut, and
    says so.
    """
    lengths = sorted(max(sum(shares), measured or 0) for shares, measured in layouts.values())
    most = min(lengths[-1], 2 * lengths[-2]) if len(lengths) > 1 else lengths[0]

    def line(named: Mapping[str, float], word: str) -> Line:
        """A bar of its parts, cut where it is far longer than all others."""
        seconds = sum(named.values())
        told = f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
        cut = ", cut" if seconds > 1.001 * most else ""
        bars = [("", length, LAYOUT_COLOURS[name]) for name, length in named.items()]
        return Line(bars, f"{told} s {word}{cut}")

    rows, seen = {}, set()
    for name, (shares, measured) in layouts.items():
        named = {part: n for part, n in zip(LAYOUT_COLOURS, shares, strict=False) if n}
        rows[name] = [line(named, "predicted")]
        if measured is not None:
            rows[name].append(line({"measured": measured}, "measured"))
        seen |= {bar[2] for one in rows[name] for bar in one.bars}
    key = {name: colour for name, colour in LAYOUT_COLOURS.items() if colour in seen}
    title = fastest(layouts) if title is None else title
    return stacked({"": rows}, title, "seconds of a step", key, most, 0.17)


def fastest(layouts: Layouts) -> str:
    """Which layout is the fastest, and the range of measured over predicted seconds.

    Measured times within 5 % of the least are a tie.
    """
    predicted = min(layouts, key=lambda name: sum(layouts[name][0]))
    seconds = {name: found for name, (_, found) in layouts.items() if found is not None}
    if len(seconds) < len(layouts):
        return f"{predicted} is predicted to be the fastest"
    measured = min(seconds, key=lambda name: seconds[name])
    ratios = [found / sum(layouts[name][0]) for name, found in seconds.items()]
    range_of = f"{min(ratios):.2f} to {max(ratios):.2f}"
    close = [name for name in seconds if seconds[name] <= 1.05 * seconds[measured]]
    named = "as predicted" if measured == predicted else f"not {predicted}"
    told = f"{measured} wins, {named}"
    if len(close) > 1:
        there = "with" if predicted in close else "without"
        told = f"{len(close)} layouts tie, {there} {predicted}"
    return f"{told}; measured / predicted {range_of}"


EXPERT_TINTS = (0.75, 0.45, 0.6, 0.3)  # of a rank's experts, one after the other


def expert_loads(
    panels: Mapping[str, Loads], title: str | None = None, what: str = "rows in this step"
) -> style.CourseFigure:
    """A panel for each name, a row for each rank, a bar for each expert: as long as its rows.

    An expert has the hue of the rank that holds it in the first panel, wherever it is later. The
    line is the mean of the ranks. what: the rows are. The title, unless given, compares the first
    panel and the last.
    """
    worst = {name: most_over_mean(loads) for name, loads in panels.items()}
    hues = {
        expert: style.tint(style.rank_colour(rank), EXPERT_TINTS[number % len(EXPERT_TINTS)])
        for rank, experts in enumerate(next(iter(panels.values())))
        for number, expert in enumerate(experts)
    }

    def line(experts: Mapping[int, float]) -> Line:
        bars = [(str(expert), rows, hues[expert]) for expert, rows in experts.items()]
        return Line(bars, f"{sum(experts.values()):.0f}")

    shown = {
        f"{name}: {worst[name]:.2f} × the mean": dict(
            zip(pen.ranks(len(loads)), ([line(experts)] for experts in loads), strict=True)
        )
        for name, loads in panels.items()
    }
    first, last = next(iter(panels)), list(panels)[-1]
    told = f"Busiest rank: {worst[first]:.2f} × the mean {first}, {worst[last]:.2f} × {last}"
    label = f"{what} (dashed: the mean; an expert's hue: its rank in the first panel)"
    figure = stacked(shown, title or told, label, {}, line_inches=0.19)
    for axes, loads in zip(figure.axes, panels.values(), strict=True):
        mean = sum(sum(rank.values()) for rank in loads) / len(loads)
        axes.axvline(mean, color=style.INK, linewidth=1.1, linestyle=(0, (3, 2)))
        near = mean - 0.07 * axes.get_xlim()[1], mean
        for text in axes.texts:
            if not isinstance(text, Annotation):
                _move_off(axes, text, mean)
            elif near[0] < text.xy[0] < near[1]:
                text.xy = mean, text.xy[1]  # beside the line, not through it
    return figure


def _move_off(axes: Axes, text: Text, x: float) -> None:
    """Move a centred text left or right, so that a line at `x` does not go through it."""
    half = 0.6 * pen.CHARACTER_INCHES * len(text.get_text()) / pen.inches_per_unit(axes)
    middle = text.get_position()[0]
    if abs(middle - x) < half:
        text.set_x(x + (half if middle > x else -half))


def most_over_mean(loads: Loads) -> float:
    """The most rows of a rank over the mean."""
    totals = [sum(rank.values()) for rank in loads]
    return max(totals) * len(totals) / sum(totals) if sum(totals) else 1.0
