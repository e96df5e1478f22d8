"""Bytes on the wire: what the formula says beside what was counted."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from byhand.figures import style

BAR_INCHES, GAP_INCHES, TOP_INCHES, BOTTOM_INCHES, RIGHT_INCHES = 0.23, 0.14, 0.5, 0.5, 1.5
CHARACTER_INCHES = 0.08
PALE = 0.55  # how far towards white a predicted bar is drawn

Bars = Mapping[str, Mapping[str, float]]  # row: {op: bytes}


def bytes_bars(predicted: Bars, counted: Bars, title: str | None = None) -> Figure:
    """Two stacked bars per row, predicted (pale) above counted, one colour per collective.

    predicted and counted have the same rows, such as {"rank 0": {"all_reduce": 6000}}.
    The title, unless given, says whether the two agree.
    """
    if list(predicted) != list(counted):
        raise ValueError(f"rows differ: predicted {list(predicted)}, counted {list(counted)}")
    most = max(sum(ops.values()) for bars in (predicted, counted) for ops in bars.values())
    factor, unit = _unit(most)
    pair = 2 * BAR_INCHES + GAP_INCHES
    names = [row.replace("_", "-") for row in counted]
    left = 0.25 + CHARACTER_INCHES * max(map(len, names))
    with style.styled():
        height = TOP_INCHES + pair * len(counted) + BOTTOM_INCHES
        figure = style.new_figure(height, finding(predicted, counted) if title is None else title)
        axes = style.axes_at(figure, left, TOP_INCHES, RIGHT_INCHES, BOTTOM_INCHES)
        axes.set(xlim=(0, most / factor or 1), ylim=(pair * len(counted), 0))
        axes.set_xlabel(f"{unit} sent")
        axes.set_yticks([index * pair + BAR_INCHES for index in range(len(counted))], names)
        for index, row in enumerate(counted):
            _draw_bar(axes, index * pair, predicted[row], factor, "predicted")
            _draw_bar(axes, index * pair + BAR_INCHES, counted[row], factor, "counted")
    return figure


def finding(predicted: Bars, counted: Bars) -> str:
    """Whether counted bytes are the predicted ones, or the row where they differ most."""
    differences = {
        row: sum(counted[row].values()) - sum(predicted[row].values()) for row in counted
    }
    row = max(differences, key=lambda row: abs(differences[row]))
    if differences[row] == 0:
        return "Counted and predicted agree to the byte"
    got, want = sum(counted[row].values()), sum(predicted[row].values())
    return f"{row}: {got:,.0f} bytes counted, {want:,.0f} predicted"


def _draw_bar(axes: Axes, top: float, ops: Mapping[str, float], factor: float, kind: str) -> None:
    start, pale = 0.0, PALE if kind == "predicted" else 0.0
    inches_per_unit = axes.get_position().width * style.WIDTH_INCHES / axes.get_xlim()[1]
    for op, num_bytes in ops.items():
        length = num_bytes / factor
        colour = _towards_white(style.wire_colour(op), pale)
        place = {"y": top + BAR_INCHES / 2, "height": BAR_INCHES - 0.03, "left": start}
        axes.barh(width=length, color=colour, edgecolor=style.PAPER, linewidth=0.8, **place)
        name = op.replace("_", "-")
        if length * inches_per_unit >= CHARACTER_INCHES * len(name):
            look = {"color": style.readable_on(colour), "fontsize": style.SMALL_POINTS}
            middle = (start + length / 2, top + BAR_INCHES / 2)
            axes.text(*middle, name, ha="center", va="center_baseline", **look)
        start += length
    total = style.num_bytes_text(start * factor)
    end = (start + 0.06 / inches_per_unit, top + BAR_INCHES / 2)
    axes.text(*end, f"{total} {kind}", va="center_baseline", fontsize=style.SMALL_POINTS)


def _towards_white(colour: str, share: float) -> tuple[float, ...]:
    return tuple(channel + (1 - channel) * share for channel in to_rgb(colour))


def _unit(most: float) -> tuple[float, str]:
    scales = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
    return next(((factor, unit) for factor, unit in scales if most >= factor), (1.0, "bytes"))
