"""Things end to end, to scale: a flat parameter and its shards; gradients and their buckets."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from byhand.figures import parts, style
from byhand.words import counted

SHADES, BUCKET_SHADES = ("#c9d1d9", "#e3e8ed"), ("#1f4e79", "#5b8db8")
HEIGHT = 0.7  # of a bar, in its row


def flat_shards(numbers: Mapping[str, int], num_ranks: int) -> Figure:
    """Parameters end to end, and below them the equal shards that ranks keep of them.

    numbers: how many numbers each parameter has, by name, in order.
    """
    total = sum(numbers.values())
    each = -(-total // num_ranks)
    padding = each * num_ranks - total
    zeros = f" {counted(padding, 'zero')} of padding" if padding else " no padding"
    title = f"{total} numbers in {num_ranks} equal shards of {each}:{zeros}"
    with style.plot(1.8, title) as (figure, axes):
        style.bare(axes, xlim=(0, each * num_ranks), ylim=(1.4, -1))
        style.settle(figure)
        above = [(_names(*pair), pair[1], SHADES[i % 2]) for i, pair in enumerate(numbers.items())]
        parts.stack(axes, 0, HEIGHT, [*above, (_names("0", padding), padding, style.PAPER)])
        shards = [(_names(f"rank {r}", each), each, style.rank_colour(r)) for r in range(num_ranks)]
        parts.stack(axes, 1, HEIGHT, shards)
        for y, text in ((-0.65, "parameters, end to end"), (1.6, "what each rank keeps")):
            parts.small(axes, (0, y), text, ha="left")
    return figure


def _names(name: str, count: int) -> tuple[str, str]:
    return f"{name}: {count}", name


def bucket_layout(layer_bytes: Sequence[float], buckets: Sequence[Sequence[int]]) -> Figure:
    """The gradients in the order in which backward completes them, cut into buckets.

    layer_bytes: bytes of each layer's gradients; buckets: lists of layer numbers, in that order.
    Widths are in proportion to bytes.
    """
    totals = [sum(layer_bytes[layer] for layer in bucket) for bucket in buckets]
    last, unit = totals[-1] / sum(totals), sum(totals) / 100
    title = f"{len(buckets)} buckets: the last {last:.0%} of the bytes cannot hide behind backward"
    if len(buckets) == 1:
        title = "One bucket: nothing travels before backward is through"
    with style.plot(1.7, title) as (figure, axes):
        least = {layer: max(layer_bytes[layer], unit / 2) for bucket in buckets for layer in bucket}
        room = sum(least.values()) + 3 * unit * (len(buckets) - 1)
        style.bare(axes, xlim=(0, room), ylim=(1, -1))
        style.settle(figure)
        left = 0.0
        for bucket, total in zip(buckets, totals, strict=True):
            named = enumerate(bucket)
            bars = [((f"layer {n}", str(n)), least[n], BUCKET_SHADES[i % 2]) for i, n in named]
            end = parts.stack(axes, 0, HEIGHT, bars, left)
            parts.bracket(axes, (left, end), 0.45, 0.1)
            text = style.num_bytes_text(total)
            if parts.fits(axes, end - left + 3 * unit, text):
                parts.small(axes, ((left + end) / 2, 0.65), text, va="top")
            left = end + 3 * unit
        text = "backward completes them in this order  ⟶"
        parts.small(axes, (0, -0.65), text, ha="left")
    return figure
