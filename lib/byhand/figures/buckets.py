"""Which layer's gradient travels in which bucket."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from byhand.figures import parts, style

HEIGHT_INCHES, BAR_INCHES, BAR_TOP = 1.75, 0.42, 0.78
MARGIN_INCHES, GAP_INCHES = 0.1, 0.16
LEAST_INCHES = 0.04  # a layer's narrowest bar
SHADES = ("#1f4e79", "#5b8db8")


def bucket_layout(
    layer_bytes: Sequence[float], buckets: Sequence[Sequence[int]], title: str | None = None
) -> Figure:
    """The gradients in the order in which backward completes them, cut into buckets.

    layer_bytes: bytes of each layer's gradients; buckets: lists of layer numbers, in that order.
    Widths are in proportion to bytes.
    """
    title = _title(layer_bytes, buckets) if title is None else title
    room = style.WIDTH_INCHES - 2 * MARGIN_INCHES - GAP_INCHES * (len(buckets) - 1)
    inches = room / sum(layer_bytes[layer] for bucket in buckets for layer in bucket)
    with style.styled():
        figure = style.new_figure(HEIGHT_INCHES, title)
        canvas = style.canvas(figure)
        left = MARGIN_INCHES
        for bucket in buckets:
            begin = left
            for place, layer in enumerate(bucket):
                width = max(layer_bytes[layer] * inches, LEAST_INCHES)
                size, names = (width, BAR_INCHES), (f"layer {layer}", str(layer))
                parts.named_box(canvas, (left, BAR_TOP), size, names, SHADES[place % 2])
                left += width
            _bracket(canvas, begin, left, sum(layer_bytes[layer] for layer in bucket))
            left += GAP_INCHES
        text = "backward completes them in this order"
        parts.small(canvas, (MARGIN_INCHES, 0.56), text, ha="left", va="center")
        begin = MARGIN_INCHES + 0.15 + 0.062 * len(text)
        parts.arrow(canvas, (begin, 0.56), (begin + 0.9, 0.56), width=1)
    return figure


def _title(layer_bytes: Sequence[float], buckets: Sequence[Sequence[int]]) -> str:
    if len(buckets) == 1:
        return "One bucket: nothing travels before backward is through"
    totals = [sum(layer_bytes[layer] for layer in bucket) for bucket in buckets]
    last = totals[-1] / sum(totals)
    return f"{len(buckets)} buckets: the last {last:.0%} of the bytes cannot hide behind backward"


def _bracket(canvas, begin: float, end: float, num_bytes: float) -> None:
    top = BAR_TOP + BAR_INCHES + 0.07
    canvas.plot([begin, begin, end, end], [top, top + 0.06, top + 0.06, top], color=style.INK, lw=1)
    text = style.num_bytes_text(num_bytes)
    if len(text) * parts.CHARACTER_INCHES < end - begin + GAP_INCHES:
        parts.small(canvas, ((begin + end) / 2, top + 0.12), text, va="top")
