"""Things end to end, to scale, and below them what they are cut into: shards, or buckets."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from byhand.figures import style
from byhand.figures.bars import Line, stacked
from byhand.words import counted

SHADES, BUCKET_SHADES = ("#c9d1d9", "#e3e8ed"), (style.COMPUTE, "#5b8db8")
LEAST = 0.005  # of all bytes: how long a layer of none is drawn


def flat_shards(numbers: Mapping[str, int], num_ranks: int) -> Figure:
    """Parameters end to end, and below them the equal shards that ranks keep of them.

    numbers: how many numbers each parameter has, by name, in order.
    """
    total = sum(numbers.values())
    each = -(-total // num_ranks)
    padding = each * num_ranks - total
    zeros = f"{counted(padding, 'zero')} of padding" if padding else "no padding"
    title = f"{total} numbers in {num_ranks} equal shards of {each}: {zeros}"
    whole = [(_names(*pair), pair[1], SHADES[i % 2]) for i, pair in enumerate(numbers.items())]
    shards = [(_names(f"rank {r}", each), each, style.rank_colour(r)) for r in range(num_ranks)]
    whole.append((_names("0", padding), padding, style.PAPER))
    return _end_to_end({"parameters": whole, "shards": shards}, title, "numbers, end to end")


def _names(name: str, count: int) -> tuple[str, str]:
    return f"{name}: {count}", name


def bucket_layout(layer_bytes: Sequence[float], buckets: Sequence[Sequence[int]]) -> Figure:
    """The gradients in the order in which backward completes them, cut into buckets.

    layer_bytes: bytes of each layer's gradients; buckets: lists of layer numbers, in that order.
    """
    totals = [sum(layer_bytes[layer] for layer in bucket) for bucket in buckets]
    least, last = LEAST * sum(totals), totals[-1] / sum(totals)
    title = f"{len(buckets)} buckets: the last {last:.0%} of the bytes cannot hide behind backward"
    if len(buckets) == 1:
        title = "One bucket: nothing travels before backward is through"
    layers, shown = [], []
    for number, (bucket, total) in enumerate(zip(buckets, totals, strict=True)):
        shade, text = BUCKET_SHADES[number % 2], style.num_bytes_text(total)
        lengths = {layer: max(layer_bytes[layer], least) for layer in bucket}
        layers += [((f"layer {n}", str(n)), length, shade) for n, length in lengths.items()]
        shown.append(((f"bucket {number}: {text}", text), sum(lengths.values()), shade))
    rows = {"gradients": layers, "buckets": shown}
    figure = _end_to_end(rows, title, "bytes, in the order in which backward completes them  ⟶")
    figure.axes[0].xaxis.set_major_formatter(lambda num_bytes, _: style.num_bytes_text(num_bytes))
    return figure


def _end_to_end(rows: Mapping[str, Sequence[tuple]], title: str, xlabel: str) -> Figure:
    lines = {name: [Line(bars, "")] for name, bars in rows.items()}
    return stacked({"": lines}, title, xlabel, {}, line_inches=0.3)
