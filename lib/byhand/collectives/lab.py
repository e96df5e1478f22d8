"""The eight collectives shown on real ranks: what each rank holds before, and after.

Rank r's shard j holds the number (j+1)·10^r. So every number says where it came from: 30 is shard 2
of rank 1, and 3333 is the sum of shard 2 over ranks 0 to 3. The pictures are coloured by reading
the numbers that came back, not by knowing what ought to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from byhand.collectives import algorithms as collectives
from byhand.collectives.with_torch import WITH_TORCH
from byhand.runtime import Run, launch
from byhand.words import an

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from ipywidgets import VBox

    from byhand.figures import Block
    from byhand.figures.style import CourseFigure

MOST_RANKS = 8  # a digit each
FINDINGS = {
    "broadcast": "Broadcast: every rank ends with rank {root}'s tensor",
    "scatter": "Scatter: every rank ends with its shard of rank {root}'s tensor",
    "gather": "Gather: rank {root} ends with every rank's shard",
    "reduce": "Reduce: rank {root} ends with the sum of all the tensors",
    "all_gather": "All-gather: every rank ends with every rank's shard",
    "reduce_scatter": "Reduce-scatter: every rank ends with its shard of the sum",
    "all_reduce": "All-reduce: every rank ends with the sum of all the tensors",
    "all_to_all": "All-to-all: rank r ends with shard r of every rank",
}
NAMES = tuple(FINDINGS)
ROOTED = ("broadcast", "scatter", "gather", "reduce")


@dataclass(repr=False)
class Demonstration:
    """One collective, run. before[rank] and after[rank] are the numbers that the rank held."""

    name: str
    root: int
    before: list[list[int]]
    after: list[list[int]]
    run: Run

    def __repr__(self) -> str:
        rows = [("rank", "before", "after")]
        for rank, (before, after) in enumerate(zip(self.before, self.after, strict=True)):
            rows.append((str(rank), _numbers(before), _numbers(after)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["   ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self.finding, *lines])

    @property
    def finding(self) -> str:
        """What the collective did, in a sentence."""
        return FINDINGS[self.name].format(root=self.root)

    def _repr_html_(self) -> str:
        return picture(self)._repr_html_()


def picture(*demonstrations: Demonstration) -> CourseFigure:
    """Who held what before and after, as the numbers say; one demonstration below the other."""
    from byhand.figures import Picture, collective_pictures

    pictures = []
    for shown in demonstrations:
        name = shown.name
        before, after = (
            [[_block(number, by_origin) for number in numbers] for numbers in rows]
            for rows, by_origin in ((shown.before, False), (shown.after, name == "all_to_all"))
        )
        pictures.append(Picture(before, after, name, shown.finding))
    return collective_pictures(pictures)


def demonstrate(
    name: str, world_size: int = 4, root: int = 0, by_hand: bool = False
) -> Demonstration:
    """Run one collective on fresh ranks: torch's own, or, `by_hand`, the one from send and recv.

    Raises:
        ValueError: an unknown name, more ranks than digits, or a root that is no rank.
    """
    if name not in NAMES:
        raise ValueError(f"no collective is called {name!r}; the eight are {', '.join(NAMES)}")
    if not 1 <= world_size <= MOST_RANKS:
        raise ValueError(f"a demonstration has 1 to {MOST_RANKS} ranks, not {world_size}")
    if not 0 <= root < world_size:
        raise ValueError(f"root {root} is not one of the ranks, 0 to {world_size - 1}")

    def on_rank(rank: int, world_size: int) -> tuple[list[int], list[int]]:
        """The numbers held before and after."""
        tensor = torch.arange(1, world_size + 1) * 10**rank
        if name in ("gather", "all_gather"):
            tensor = tensor[rank : rank + 1]  # its own shard
        elif name in ("broadcast", "scatter") and rank != root:
            tensor = torch.zeros_like(tensor)
        before = tensor.tolist()
        result = _called(by_hand, name, tensor, root)
        # A zero is memory that nothing has been written to.
        return [n for n in before if n], [n for n in result.tolist() if n]

    run = launch(on_rank, world_size)
    before, after = map(list, zip(*run.results, strict=True))
    return Demonstration(name, root, before, after, run)


def _called(by_hand: bool, name: str, tensor: Tensor, root: int) -> Tensor:
    """What the collective returns; an empty tensor for nothing."""
    call = getattr(collectives, name) if by_hand else WITH_TORCH[name]
    result = call(tensor, root) if name in ROOTED else call(tensor)
    return torch.empty(0) if result is None else result


def matrix(name: str, world_size: int = 4, root: int = 0) -> Tensor:
    """The collective as a matrix: from all ranks' numbers, in rank order, to all ranks' results.

    Torch's own runs once for each number that goes in, with that one 1 and all others 0. What a
    rooted call does not look at, the tensors of other ranks, has no column.
    """
    holders = [root] if name in ("broadcast", "scatter") else range(world_size)
    width = 1 if name in ("gather", "all_gather") else world_size

    def columns(rank: int, world_size: int) -> Tensor:
        """This rank's results, a column for each number."""
        found = []
        for holder, shard in ((holder, shard) for holder in holders for shard in range(width)):
            tensor = torch.zeros(width)
            tensor[shard] = float(rank == holder)
            found.append(_called(False, name, tensor, root))
        return torch.stack(found, dim=1)

    return torch.cat(launch(columns, world_size).results)


def mirror_picture(first: str, second: str, world_size: int = 4) -> CourseFigure:
    """The matrices of two collectives without a root side by side: a square wherever a 1 stands.

    A square has the colour of its rank on the short side: a column's in a tall matrix, a row's in
    a wide one. So what is transposed keeps its colour. Lines part the ranks.
    """
    from byhand.figures import pen, style

    found = {name: matrix(name, world_size) for name in (first, second)}
    equal = torch.equal(found[first], found[second].T)
    words = [name.replace("_", "-") for name in found]
    title = f"{words[1].capitalize()} is {'' if equal else 'not '}{words[0]}, transposed"
    widths = [each.shape[1] + 3.2 for each in found.values()]
    with style.plot(4.6, title, 1, 2, width_ratios=widths) as (figure, both):
        for axes, word, ones in zip(both, words, found.values(), strict=True):
            outputs, inputs = ones.shape
            style.bare(axes, xlim=(-3.2, inputs), ylim=(outputs, -1), aspect="equal")
            for rank in range(world_size):
                high, wide = outputs // world_size, inputs // world_size
                pen.small(axes, (-0.3, (rank + 0.5) * high), f"rank {rank} gets", ha="right")
                pen.small(axes, ((rank + 0.5) * wide, -0.5), str(rank))
                for part in range(world_size):
                    corner = part * wide, rank * high
                    pen.box(axes, corner, (wide, high), style.PAPER, style.FAINT)
            for row, column in ones.nonzero().tolist():
                rank = column // wide if inputs < outputs else row // high
                colour = style.rank_colour(rank)
                pen.box(axes, (column + 0.1, row + 0.1), (0.8, 0.8), colour, width=0)
            axes.set_title(f"{word}, from rank", fontsize=style.TEXT_POINTS, pad=2)
    return figure


def busiest(run: Run) -> int:
    """The most bytes that one rank sent, or that one received, by `send` and `recv`."""
    through: Counter[tuple[str, int]] = Counter()
    for event in run.ledger.events:
        if event.op in ("send", "recv"):
            through[event.op, event.rank] += event.payload_bytes
    return max(through.values(), default=0)


def links(run: Run) -> dict[tuple[int, int], float]:
    """By (sender, receiver): what was sent, in tensors of the size that rank 0 returned.

    Raises:
        ValueError: rank 0 returned no tensor.
    """
    sent, whole = Counter(), run.results[0]
    if not isinstance(whole, Tensor):
        raise ValueError(
            f"rank 0 returned {an(type(whole).__name__)}, but links are counted in tensors of the "
            "size that rank 0 returned: let each rank return its tensor"
        )
    for event in run.ledger.select("send"):
        sent[event.rank, event.peer] += event.sent_bytes / whole.nbytes
    return dict(sent)


def _block(number: int, by_origin: bool = False) -> Block:
    """30 -> shard 2 of rank 1; 3333 -> shard 2, summed over ranks 0 to 3.

    It stands in the column of its shard, or, `by_origin`, in that of the rank it came from.
    """
    from byhand.figures import Block

    digits = str(number)[::-1]
    origins = tuple(rank for rank, digit in enumerate(digits) if digit != "0")
    column = origins[0] if by_origin else int(digits[origins[0]]) - 1
    return Block(column, origins, str(number))


def _numbers(numbers: list[int]) -> str:
    return " ".join(map(str, numbers)) or "-"


def collective_explorer(name: str = "broadcast", world_size: int = 4) -> VBox:
    """Choose the collective, the number of ranks and the root; see who holds what.

    Each choice launches that many ranks.
    """
    from byhand.tools.explorer import explorer, menu, slider

    collective = menu("collective", NAMES, name)
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    root = slider("root", 0, 0, world_size - 1)
    few = {"ranks": (2, 4, 6), "root": range(6)}
    return explorer([[collective, ranks, root]], draw_collective, few, last_root)


def draw_collective(name: str, world_size: int, root: int) -> tuple[CourseFigure, str]:
    """Who holds what before and after a collective, which runs for that."""
    return picture(demonstrate(name, world_size, root)), ""


def last_root(name: str, world_size: int) -> int:
    """The last rank, where a collective has a root."""
    return world_size - 1 if name in ROOTED else 0
