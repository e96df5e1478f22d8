"""Rounds of an all-reduce: whose terms each rank holds, who sends to whom, bytes by link."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from byhand.figures import pen, style
from byhand.figures.cells import Cell, cells
from byhand.figures.collective import Block, draw_panel

ROW_INCHES = 0.36
MOST_COLUMNS_WITH_TEXT = 8
WIDE = 0.55  # a rank's shards, of the way to the next round

Terms = Mapping[tuple[int, int], set[int]]
Links = Mapping[tuple[int, int], float]


def round_picture(terms: Terms, transfers: Sequence, sent: Links, title: str) -> style.CourseFigure:
    """A row per rank. Left: its shards, with a stripe for each rank in the sum, which the number
    counts. Middle: the round's messages, in their sender's colour. Right: what each link has
    carried so far, in tensors: from the row's rank to the column's.

    terms: by (rank, shard), the ranks in the sum, after the round. transfers: have sender,
    receiver, start and stop. sent: by (sender, receiver).
    """
    num_ranks, num_shards = (1 + max(holding[axis] for holding in terms) for axis in (0, 1))
    rows = [[] for _ in range(num_ranks)]
    for (rank, shard), origins in sorted(terms.items()):
        text = str(len(origins)) if num_shards <= MOST_COLUMNS_WITH_TEXT else ""
        rows[rank].append(Block(shard, tuple(sorted(origins)), text))
    shape = {"width_ratios": (2.3, 1.1, 2.3)}
    with style.plot(0.85 + ROW_INCHES * num_ranks, title, 1, 3, **shape) as (figure, every):
        shards, arrows, links = every
        draw_panel(shards, rows, num_shards, "shards after it: sums of how many")
        _draw_messages(arrows, transfers, num_shards, num_ranks)
        _draw_links(links, num_ranks, sent, "has sent, in tensors, to rank")
        links.set_yticks(range(num_ranks), range(num_ranks))
    return figure


def all_rounds(
    moments: Sequence[Terms], rounds: Sequence[Sequence], title: str, hosts: int = 1
) -> style.CourseFigure:
    """All rounds of an all-reduce from left to right: a row per rank, its shards, the messages.

    A tensor in one has a stripe for each rank whose term is in it, and an edge once all are. Cut
    into shards, each says how many terms it has, and is dark once it has all; a message, which
    shards it carries. moments: the terms before the first round and after each. rounds: of
    transfers. hosts: a line is drawn between the ranks of one host and of the next.
    """
    num_ranks, num_shards = (1 + max(holding[axis] for holding in moments[0]) for axis in (0, 1))
    height = 0.95 + 0.42 * num_ranks
    with style.plot(height, title) as (figure, axes):
        style.bare(axes, xlim=(-0.32, len(moments) - 0.4), ylim=(num_ranks - 0.5, -1.0))
        for number, terms in enumerate(moments):
            named = f"round {number}" if number else "before"
            pen.small(axes, (number + WIDE / 2, -0.75), named)
            for (rank, shard), origins in terms.items():
                wide, draw = WIDE / num_shards, _draw_count if num_shards > 1 else _draw_terms
                draw(axes, number + shard * wide, rank, wide, origins, num_ranks)
        for number, transfers in enumerate(rounds):
            for transfer in transfers:
                colour = style.rank_colour(transfer.sender)
                begin = number + WIDE + 0.15 * (num_shards > 1)
                tail, head = (begin, transfer.sender), (number + 1, transfer.receiver)
                pen.arrow(axes, tail, head, colour, 1.4)
                if num_shards > 1:
                    pen.badge(axes, tail, _shards_text(transfer), colour)
        for rank in range(num_ranks):
            pen.small(axes, (-0.06, rank), f"rank {rank}", ha="right")
        for host in range(1, hosts):
            line = {"color": style.INK, "lw": 0.9, "ls": (0, (3, 3))}
            axes.axhline(host * num_ranks / hosts - 0.5, **line)
    return figure


def _draw_terms(
    axes: Axes, x: float, rank: int, wide: float, origins: set[int], num_ranks: int
) -> None:
    stripe = 0.85 * wide / num_ranks
    for origin in range(num_ranks):
        colour = style.rank_colour(origin) if origin in origins else style.tint(style.FAINT, 0.35)
        pen.box(axes, (x + origin * stripe, rank - 0.3), (stripe, 0.6), colour, colour, 0)
    if len(origins) == num_ranks:
        pen.box(axes, (x, rank - 0.3), (0.85 * wide, 0.6), "none", style.INK, 1.2)


def _draw_count(
    axes: Axes, x: float, rank: int, wide: float, origins: set[int], num_ranks: int
) -> None:
    share = len(origins) / num_ranks
    colour = style.COMPUTE if share == 1 else to_hex(style.tint(style.COMPUTE, 0.4 * share))
    pen.box(axes, (x, rank - 0.3), (0.94 * wide, 0.6), colour, colour, 0)
    look = {"color": style.readable_on(colour)}
    pen.small(axes, (x + 0.47 * wide, rank), str(len(origins)), **look)


def _shards_text(transfer: Any) -> str:
    many = transfer.stop - transfer.start > 1
    return f"{transfer.start}–{transfer.stop - 1}" if many else f"{transfer.start}"


def traffic_matrices(sent: Mapping[str, Links], num_ranks: int, title: str) -> style.CourseFigure:
    """Side by side, for each name: what each rank (its row) sent to each other (its column).

    In the margins, what each rank sends and receives in all, the most of it bold.
    sent: by name, then by (sender, receiver), in tensors.
    """
    height, look = 0.85 + ROW_INCHES * (num_ranks + 1), {"squeeze": False}
    with style.plot(height, title, 1, len(sent), **look) as (figure, ((*every,),)):
        for axes, (name, links) in zip(every, sent.items(), strict=True):
            _draw_links(axes, num_ranks, links, f"{name}: sent, in tensors, to rank")
            _draw_sums(axes, num_ranks, links)
    return figure


def _draw_sums(axes: Axes, num_ranks: int, sent: Links) -> None:
    """What each rank sends, right of its row, and what it receives, below its column."""
    sums: dict[tuple[int, int], float] = defaultdict(float)  # by (0: sends, 1: receives; rank)
    for link, tensors in sent.items():
        for side in (0, 1):
            sums[side, link[side]] += tensors
    for (side, rank), total in sums.items():
        weight = "bold" if total == max(sums.values()) else "normal"
        place = (rank + 0.5, num_ranks) if side else (num_ranks + 0.5, rank)
        pen.small(axes, place, _tensors_text(total), weight=weight)
    axes.set(xlim=(0, num_ranks + 1), ylim=(num_ranks + 0.5, -0.5))
    columns = [*map(str, range(num_ranks)), "sends"]
    axes.set_xticks([place + 0.5 for place in range(num_ranks + 1)], columns)
    axes.set_yticks(range(num_ranks + 1), [*pen.ranks(num_ranks), "receives"])


def _draw_messages(axes: Axes, transfers: Sequence, num_shards: int, num_ranks: int) -> None:
    style.bare(axes, xlim=(0, max(len(transfers), 1)), ylim=(num_ranks - 0.5, -0.5))
    axes.set_title("sends shard", fontsize=style.TEXT_POINTS)
    style.settle(axes.figure.figure)
    for number, transfer in enumerate(transfers):
        colour, x = style.rank_colour(transfer.sender), number + 0.5
        pen.arrow(axes, (x, transfer.sender), (x, transfer.receiver), colour, 1.7)
        text = _shards_text(transfer)
        fits = num_shards > 1 and pen.fits(axes, 1, text)
        pen.badge(axes, (x, transfer.sender), text if fits else "", colour)


def _draw_links(axes: Axes, num_ranks: int, sent: Links, heading: str) -> None:
    most = max(sent.values(), default=0) or 1
    filled = [
        Cell(*link, [style.tint(style.OP_COLOURS["send"], tensors / most)], _tensors_text(tensors))
        for link, tensors in sent.items()
        if tensors
    ]
    names = pen.ranks(num_ranks)
    cells(axes, names, num_ranks, filled, heading, style.SMALL_POINTS)
    axes.set_xticks([rank + 0.5 for rank in range(num_ranks)], map(str, range(num_ranks)))
    axes.tick_params(length=0, labeltop=True, labelbottom=False)


def _tensors_text(tensors: float) -> str:
    """0.125 -> '.125', 1.5 -> '1.5'."""
    text = f"{tensors:.2f}" if tensors >= 1 else f"{tensors:.3f}"
    return text.rstrip("0").rstrip(".").removeprefix("0")
