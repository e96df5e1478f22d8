"""One round of an all-reduce: whose terms each rank holds, who sends to whom, bytes by link."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style
from byhand.figures.collective import Block, draw_panel

ROW_INCHES = 0.36
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
    rows = [[] for _ in range(num_ranks)]
    for (rank, piece), origins in sorted(terms.items()):
        text = str(len(origins)) if num_pieces <= MOST_COLUMNS_WITH_TEXT else ""
        rows[rank].append(Block(piece, tuple(sorted(origins)), text))
    shape = {"width_ratios": (2.3, 1.1, 2.3)}
    with style.plot(0.85 + ROW_INCHES * num_ranks, title, 1, 3, **shape) as (figure, every):
        pieces, arrows, links = every
        draw_panel(pieces, rows, num_pieces, "shards after it: sums of how many")
        _draw_messages(arrows, transfers, num_pieces, num_ranks)
        _draw_links(links, num_ranks, sent, "has sent, in tensors, to rank")
        links.set_yticks(range(num_ranks), range(num_ranks))
    return figure


def traffic_matrices(sent: Mapping[str, Links], num_ranks: int, title: str) -> Figure:
    """Side by side, for each name: what each rank (its row) sent to each other (its column).

    sent: by name, then by (sender, receiver), in tensors.
    """
    height, look = 0.85 + ROW_INCHES * num_ranks, {"squeeze": False}
    with style.plot(height, title, 1, len(sent), **look) as (figure, ((*every,),)):
        for axes, (name, links) in zip(every, sent.items(), strict=True):
            _draw_links(axes, num_ranks, links, f"{name}: sent, in tensors, to rank")
    return figure


def _draw_messages(axes: Axes, transfers: Sequence, num_pieces: int, num_ranks: int) -> None:
    style.bare(axes, xlim=(0, max(len(transfers), 1)), ylim=(num_ranks - 0.5, -0.5))
    axes.set_title("sends shard", fontsize=style.TEXT_POINTS)
    style.settle(axes.figure)
    for place, transfer in enumerate(transfers):
        colour, x = style.rank_colour(transfer.sender), place + 0.5
        parts.arrow(axes, (x, transfer.sender), (x, transfer.receiver), colour, 1.7)
        many = transfer.stop - transfer.start > 1
        text = f"{transfer.start}–{transfer.stop - 1}" if many else f"{transfer.start}"
        fits = num_pieces > 1 and parts.fits(axes, 1, text)
        parts.badge(axes, (x, transfer.sender), text if fits else "", colour)


def _draw_links(axes: Axes, num_ranks: int, sent: Links, heading: str) -> None:
    most = max(sent.values(), default=0) or 1
    parts.rows(axes, parts.ranks(num_ranks))
    axes.set(xlim=(-0.5, num_ranks - 0.5), xticks=range(num_ranks))
    axes.set_title(heading, fontsize=style.TEXT_POINTS)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    for sender, receiver in ((s, r) for s in range(num_ranks) for r in range(num_ranks)):
        share = sent.get((sender, receiver), 0)
        colour = style.tint(style.OP_COLOURS["send"], share / most)
        corner = receiver - 0.47, sender - 0.43
        parts.box(axes, corner, (0.94, 0.86), colour, style.FAINT, 0.6)
        if share:
            text = f"{share:.2f}".rstrip("0").rstrip(".").removeprefix("0")
            parts.small(axes, (receiver, sender), text, color=style.readable_on(colour))
