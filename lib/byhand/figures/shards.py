"""Who holds which part of a matrix: products of matrices, each cut into the ranks' colours."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

TITLE_INCHES, CAPTION_INCHES, LABEL_INCHES, GAP_INCHES = 0.36, 0.28, 0.44, 0.16
LEFT_INCHES, SHEET_INCHES, CHARACTER_INCHES = 0.3, 0.07, 0.085
BRACKET_INCHES = 0.22
PLACEMENTS = ("replicated", "rows", "columns", "partial")


class Matrix(NamedTuple):
    """A matrix in a shard picture.

    rows, columns: names of its sizes, such as "T". split: "replicated" (every rank has it whole),
    "rows" or "columns" (cut that way), or "partial" (each rank has one term of a sum).
    ranks: whose the pieces are, in order; one piece for each rank unless given.
    brackets: names above equal stretches of it, from the left.
    """

    name: str
    rows: str
    columns: str
    split: str = "replicated"
    ranks: Sequence[int] | None = None
    brackets: Sequence[str] = ()


Terms = Sequence[Matrix | str]  # a str is written between matrices: "·", "=", "all-reduce →"


def shard_picture(
    lines: Mapping[str, Terms], inches: Mapping[str, float], num_ranks: int, title: str = ""
) -> Figure:
    """A line of matrices and signs for each caption in `lines`, one below the other.

    inches: how long each of the matrices' sizes is drawn. Grey is replicated; a piece in a rank's
    colour is that rank's alone; sheets behind each other are terms that are still to be added.
    """
    heights = [_height(terms, inches, num_ranks) for terms in lines.values()]
    frame = CAPTION_INCHES + LABEL_INCHES + GAP_INCHES
    total = TITLE_INCHES + sum(heights) + frame * len(heights)
    with style.drawing(total, title) as (figure, axes):
        top = TITLE_INCHES
        for (caption, terms), height in zip(lines.items(), heights, strict=True):
            axes.text(LEFT_INCHES - 0.2, top + CAPTION_INCHES / 2, caption, va="center")
            _draw_line(axes, top + CAPTION_INCHES + height / 2, height, terms, inches, num_ranks)
            top += height + frame
    return figure


def _draw_line(axes: Axes, middle, height, terms: Terms, inches, num_ranks: int) -> None:
    left, below = LEFT_INCHES, middle + height / 2 + 0.07
    if any(isinstance(term, Matrix) and term.split == "partial" for term in terms):
        middle += SHEET_INCHES * num_ranks / 2  # the sheets' room is above them all
    for term in terms:
        if isinstance(term, str):
            width = CHARACTER_INCHES * len(term)
            axes.text(left + width / 2, middle, term, ha="center", va="center")
            left += width + GAP_INCHES
            continue
        wide, tall = inches[term.columns], inches[term.rows]
        sheets = SHEET_INCHES * (num_ranks - 1) if term.split == "partial" else 0
        _draw_matrix(axes, (left, middle - tall / 2), (wide, tall), term, num_ranks)
        _draw_brackets(axes, (left, middle - tall / 2), wide, term.brackets)
        label = f"{term.name} [{term.rows} × {term.columns}]\n{placement(term)}"
        room = max(wide, _label_width(term))
        parts.small(axes, (left + wide / 2, below), label, va="top", linespacing=1.3)
        left += (wide + room) / 2 + sheets + GAP_INCHES


def _draw_matrix(axes: Axes, corner, size, matrix: Matrix, num_ranks: int) -> None:
    left, top = corner
    ranks = list(matrix.ranks or range(num_ranks))
    if matrix.split == "replicated":
        parts.box(axes, corner, size, style.FAINT)
    elif matrix.split == "partial":
        for rank in reversed(ranks):
            shift = SHEET_INCHES * rank
            parts.box(axes, (left + shift, top - shift), size, style.rank_colour(rank))
    else:
        for index, rank in enumerate(ranks):
            piece = _piece(corner, size, matrix.split, index, len(ranks))
            parts.box(axes, *piece, style.rank_colour(rank))
            _name_piece(axes, *piece, rank)


def _draw_brackets(axes: Axes, corner, wide: float, names: Sequence[str]) -> None:
    (left, top), each = corner, wide / max(len(names), 1)
    for number, name in enumerate(names):
        begin, end = left + number * each + 0.03, left + (number + 1) * each - 0.03
        sides = [top - 0.03, top - 0.08, top - 0.08, top - 0.03]
        axes.plot([begin, begin, end, end], sides, color=style.INK, lw=1)
        parts.small(axes, ((begin + end) / 2, top - 0.1), name, va="bottom")


def _piece(corner, size, split: str, index: int, count: int) -> tuple:
    (left, top), (wide, tall) = corner, size
    if split == "rows":
        return (left, top + index * tall / count), (wide, tall / count)
    return (left + index * wide / count, top), (wide / count, tall)


def _name_piece(axes: Axes, corner, size, rank: int) -> None:
    if min(size) >= 0.13:
        colour = style.readable_on(style.rank_colour(rank))
        middle = (corner[0] + size[0] / 2, corner[1] + size[1] / 2)
        parts.small(axes, middle, str(rank), color=colour)


def placement(matrix: Matrix) -> str:
    """The word for it: replicated, sharded or partial."""
    if matrix.split not in PLACEMENTS:
        raise ValueError(f"{matrix.name} is split by {matrix.split!r}; there are {PLACEMENTS}")
    return "sharded" if matrix.split in ("rows", "columns") else matrix.split


def _label_width(matrix: Matrix) -> float:
    label = f"{matrix.name} [{matrix.rows} × {matrix.columns}]"
    return 0.075 * max(len(label), len(placement(matrix)))


def _height(terms: Terms, inches: Mapping[str, float], num_ranks: int) -> float:
    matrices = [term for term in terms if isinstance(term, Matrix)]
    partial = any(matrix.split == "partial" for matrix in matrices)
    bracket = 2 * BRACKET_INCHES if any(matrix.brackets for matrix in matrices) else 0
    tallest = max(inches[matrix.rows] for matrix in matrices)
    return tallest + max(bracket, SHEET_INCHES * num_ranks if partial else 0)
