"""Bytes on the wire, as stacked bars: what was predicted beside what was counted, or either."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from byhand.figures import parts, style

BAR_INCHES, GAP_INCHES, TOP_INCHES, BOTTOM_INCHES = 0.23, 0.14, 0.5, 0.5
KEY_INCHES = 0.26
PALE = 0.45  # the strength of a predicted bar's colour

Bars = Mapping[str, Mapping[str, float]]  # row: {op: bytes}


def bytes_bars(
    predicted: Bars, counted: Bars, title: str | None = None, did: str = "sent", key: bool = False
) -> Figure:
    """Two stacked bars per row, predicted (pale) above counted, one colour per collective.

    predicted and counted have the same rows, such as {"rank 0": {"all_reduce": 6000}}.
    The title, unless given, says whether the two agree; `did` what was done with the bytes. With
    `key`, the colours are named above the bars.
    """
    if list(predicted) != list(counted):
        raise ValueError(f"rows differ: predicted {list(predicted)}, counted {list(counted)}")
    most = max(sum(ops.values()) for bars in (predicted, counted) for ops in bars.values())
    scales = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "bytes"))
    factor, unit = next((scale for scale in scales if most >= scale[0]), scales[-1])
    pair = 2 * BAR_INCHES + GAP_INCHES
    names = [row.replace("_", "-") for row in counted]
    left = 0.25 + parts.CHARACTER_INCHES * max(map(len, names))
    top = TOP_INCHES + KEY_INCHES * key
    height = top + pair * len(counted) + BOTTOM_INCHES
    title = finding(predicted, counted) if title is None else title
    with style.plot(height, title, left, top, 1.5, BOTTOM_INCHES) as (figure, axes):
        axes.set(xlim=(0, most / factor or 1), ylim=(pair * len(counted), 0))
        if key:
            names_of = dict.fromkeys(op for ops in counted.values() for op in ops)
            entries = [(op.replace("_", "-"), style.wire_colour(op), 0.16) for op in names_of]
            parts.key(figure, left, 0.48, entries)
        axes.set_xlabel(f"{unit} {did}")
        axes.set_yticks([index * pair + BAR_INCHES for index in range(len(counted))], names)
        for index, row in enumerate(counted):
            for line, kind, ops in ((0.5, "predicted", predicted), (1.5, "counted", counted)):
                strength = PALE if kind == "predicted" else 1.0
                shown = []
                for op, num_bytes in ops[row].items():
                    colour = style.tint(style.wire_colour(op), strength)
                    shown.append((op.replace("_", "-"), num_bytes / factor, colour))
                text = f"{style.num_bytes_text(sum(ops[row].values()))} {kind}"
                y = index * pair + line * BAR_INCHES
                parts.stack(axes, y, BAR_INCHES - 0.03, shown, text)
    return figure


def finding(predicted: Bars, counted: Bars) -> str:
    """Whether counted bytes are the predicted ones, or the row where they differ most."""
    got, want = ({row: sum(bars[row].values()) for row in counted} for bars in (counted, predicted))
    row = max(counted, key=lambda row: abs(got[row] - want[row]))
    if got[row] == want[row]:
        return "Counted and predicted agree to the byte"
    return f"{row}: {got[row]:,.0f} bytes counted, {want[row]:,.0f} predicted"


def leaving_bars(
    leaving: Bars, title: str, did: str = "that leave the busiest node in a step"
) -> Figure:
    """A stacked bar per row, such as {"tp-dp-pp": {"tp": 0, "dp": 4e9}}, in the axes' hues.

    What leaves a node in a step, a row for each order of the axes; `did`: what else these bytes
    do. A group over several axes has the hue of the first; embedding groups a pale one of pp's.
    """
    totals = {row: sum(ops.values()) for row, ops in leaving.items()}
    names = list(dict.fromkeys(name for ops in leaving.values() for name in ops))
    top = TOP_INCHES + KEY_INCHES
    height = top + 0.3 * len(leaving) + BOTTOM_INCHES
    with style.plot(height, title, 1.5, top, 0.9, BOTTOM_INCHES) as (figure, axes):
        parts.key(figure, 1.5, 0.48, [(name, _hue(name), 0.16) for name in names])
        axes.set(xlim=(0, max(totals.values()) or 1.0), ylim=(len(leaving) - 0.5, -0.5))
        axes.set_xlabel(f"bytes {did}")
        axes.xaxis.set_major_formatter(lambda value, _: style.num_bytes_text(value))
        axes.set_yticks(range(len(leaving)), list(leaving))
        for y, (row, ops) in enumerate(leaving.items()):
            shown = [(name, length, _hue(name)) for name, length in ops.items()]
            parts.stack(axes, y, 0.8, shown, style.num_bytes_text(totals[row]))
    return figure


def _hue(name: str) -> tuple[float, float, float]:
    return style.tint(style.axis_colour(name), PALE if "embedding" in name else 1.0)
