"""One round of an all-reduce: whose terms each rank holds, who sends to whom, bytes by link."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

ROW_INCHES, TOP_INCHES, BOTTOM_INCHES = 0.36, 0.66, 0.14
PIECES, ARROWS, LINKS = (0.68, 3.0), (3.15, 4.25), (4.72, 6.9)  # from left to right, in inches
LABEL_INCHES = 0.62
MOST_COLUMNS_WITH_TEXT = 8

Terms = Mapping[tuple[int, int], set[int]]
Links = Mapping[tuple[int, int], float]


def round_picture(terms: Terms, transfers: Sequence, sent: Links, title: str) -> Figure:
    """A row per rank. Left: its pieces, with a stripe for each rank in the sum, which the number
    counts. Middle: the round's messages, in their sender's colour. Right: what each link has
    carried so far, in tensors: from the row's rank to the column's.

    terms: by (rank, piece), the ranks in the sum, after the round. transfers: have sender,
    receiver, start and stop. sent: by (sender, receiver).
    """
    num_ranks, num_pieces = (1 + max(place[axis] for place in terms) for axis in (0, 1))
    with style.styled():
        figure = style.new_figure(TOP_INCHES + ROW_INCHES * num_ranks + BOTTOM_INCHES, title)
        axes = style.canvas(figure)
        headings = (
            "shards after it: sums of how many",
            "sends shard",
            "has sent, in tensors, to rank",
        )
        for (left, right), text in zip((PIECES, ARROWS, LINKS), headings, strict=True):
            axes.text((left + right) / 2, TOP_INCHES - 0.3, text, ha="center", va="center")
        for rank in range(num_ranks):
            for left in (PIECES[0], LINKS[0]):
                axes.text(left - 0.08, _middle(rank), _label(left, rank), ha="right", va="center")
        for (rank, piece), origins in terms.items():
            _draw_piece(axes, rank, piece, num_pieces, sorted(origins))
        _draw_messages(axes, transfers, num_pieces)
        _draw_links(axes, LINKS, num_ranks, sent)
    return figure


def traffic_matrices(sent: Mapping[str, Links], num_ranks: int, title: str) -> Figure:
    """Side by side, for each name: what each rank (its row) sent to each other (its column).

    sent: by name, then by (sender, receiver), in tensors.
    """
    width = (style.WIDTH_INCHES - 0.1) / len(sent)
    with style.styled():
        figure = style.new_figure(TOP_INCHES + ROW_INCHES * num_ranks + BOTTOM_INCHES, title)
        axes = style.canvas(figure)
        for number, (name, links) in enumerate(sent.items()):
            span = (LABEL_INCHES + number * width, (number + 1) * width - 0.1)
            heading = f"{name}: sent, in tensors, to rank"
            axes.text(sum(span) / 2, TOP_INCHES - 0.3, heading, ha="center", va="center")
            for rank in range(num_ranks):
                place = (span[0] - 0.08, _middle(rank))
                axes.text(*place, f"rank {rank}", ha="right", va="center")
            _draw_links(axes, span, num_ranks, links)
    return figure


def _label(left: float, rank: int) -> str:
    return f"rank {rank}" if left == PIECES[0] else str(rank)


def _middle(rank: int) -> float:
    return TOP_INCHES + ROW_INCHES * (rank + 0.5)


def _draw_piece(axes: Axes, rank: int, piece: int, num_pieces: int, origins: list[int]) -> None:
    cell = (PIECES[1] - PIECES[0]) / num_pieces
    gap = min(0.03, cell / 10)
    stripe = (cell - 2 * gap) / len(origins)
    left, top = PIECES[0] + cell * piece + gap, TOP_INCHES + ROW_INCHES * rank + 0.025
    for index, origin in enumerate(origins):
        place = (left + index * stripe, top)
        parts.box(axes, place, (stripe, ROW_INCHES - 0.05), style.rank_colour(origin), width=0)
    if num_pieces <= MOST_COLUMNS_WITH_TEXT:
        middle = (PIECES[0] + cell * (piece + 0.5), _middle(rank))
        box = {"boxstyle": "round,pad=0.12", "fc": style.PAPER, "ec": "none"}
        parts.small(axes, middle, str(len(origins)), va="center", bbox=box)


def _draw_messages(axes: Axes, transfers: Sequence, num_pieces: int) -> None:
    width = (ARROWS[1] - ARROWS[0]) / max(len(transfers), 1)
    for index, transfer in enumerate(transfers):
        x = ARROWS[0] + width * (index + 0.5)
        colour = style.rank_colour(transfer.sender)
        tail, head = (x, _middle(transfer.sender)), (x, _middle(transfer.receiver))
        parts.arrow(axes, tail, head, colour, 1.7)
        many = transfer.stop - transfer.start > 1
        text = f"{transfer.start}–{transfer.stop - 1}" if many else f"{transfer.start}"
        fits = num_pieces > 1 and width > parts.CHARACTER_INCHES * len(text)
        parts.badge(axes, tail, text if fits else "", colour)


def _draw_links(axes: Axes, span: tuple[float, float], num_ranks: int, sent: Links) -> None:
    cell, most = (span[1] - span[0]) / num_ranks, max(sent.values(), default=0) or 1
    for receiver in range(num_ranks):
        x = span[0] + cell * (receiver + 0.5)
        parts.small(axes, (x, TOP_INCHES - 0.1), str(receiver), va="center")
        for sender in range(num_ranks):
            share = sent.get((sender, receiver), 0)
            place = (span[0] + cell * receiver + 0.015, TOP_INCHES + ROW_INCHES * sender + 0.025)
            colour = style.tint(style.OP_COLOURS["send"], share / most)
            size = (cell - 0.03, ROW_INCHES - 0.05)
            parts.box(axes, place, size, colour, style.FAINT, 0.6)
            if share:
                text = f"{share:.2f}".rstrip("0").rstrip(".").removeprefix("0")
                ink = style.readable_on(colour)
                parts.small(axes, (x, _middle(sender)), text, va="center", color=ink)
