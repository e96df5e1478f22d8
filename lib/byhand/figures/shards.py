"""Who holds which part of a matrix: products of matrices, each cut into the ranks' colours."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from byhand.figures import pen, style

TITLE_INCHES, CAPTION_INCHES, LABEL_INCHES, GAP_INCHES = 0.36, 0.28, 0.44, 0.16
LEFT_INCHES, SHEET_INCHES, BRACKET_INCHES = 0.3, 0.07, 0.22
CHARACTER_INCHES, LABEL_CHARACTER_INCHES = 0.085, 0.075
PLACEMENTS = ("replicated", "rows", "columns", "partial")
TERM = re.compile(r"([^\[]+)\[(\w+) × (\w+)\](?: in (\w+))?")


class Matrix(NamedTuple):
    """A matrix in a shard picture: its name, those of its sizes, and how it is placed.

    split: "replicated" (every rank has it whole), "rows" or "columns" (cut that way), or "partial"
    (each rank has one term of a sum).
    """

    name: str
    rows: str
    columns: str
    split: str = "replicated"

    @property
    def label(self) -> list[str]:
        placement = "sharded" if self.split in ("rows", "columns") else self.split
        return [f"{self.name} [{self.rows} × {self.columns}]", placement]


def shard_picture(
    lines: Mapping[str, str],
    inches: Mapping[str, float],
    num_ranks: int,
    title: str,
    brackets: Mapping[str, Sequence[str]] | None = None,
    contents: Sequence[str] = (),
) -> style.CourseFigure:
    """A line of matrices for each caption in `lines`, such as "x[T × I], ·, W[I × O] in columns".

    After "in" stands a matrix' placement, one of PLACEMENTS; what is no matrix is written as it is.
    inches: how long each of the matrices' sizes is drawn. brackets: names above equal stretches of
    the columns of a size, each of them cut for all ranks. contents: what stands in each rank's
    shards, else its number. Grey is replicated; a shard in a rank's
    colour is that rank's alone; sheets behind each other are terms that are still to be added.

    Raises:
        ValueError: there is no such placement.
    """
    brackets, contents = brackets or {}, contents or [str(rank) for rank in range(num_ranks)]
    parsed = {caption: _terms(line) for caption, line in lines.items()}
    heights = [_height(terms, inches, num_ranks, brackets) for terms in parsed.values()]
    frame = CAPTION_INCHES + LABEL_INCHES + GAP_INCHES
    total = TITLE_INCHES + sum(heights) + frame * len(heights)
    with style.drawing(total, title) as (figure, axes):
        top = TITLE_INCHES
        for (caption, terms), height in zip(parsed.items(), heights, strict=True):
            axes.text(LEFT_INCHES - 0.2, top + CAPTION_INCHES / 2, caption, va="center")
            middle = top + CAPTION_INCHES + height / 2
            _draw_line(axes, middle, height, terms, inches, contents, brackets)
            top += height + frame
    return figure


Terms = list[Matrix | str]


def _terms(line: str) -> Terms:
    terms: Terms = []
    for text in line.split(", "):
        found = TERM.fullmatch(text)
        terms.append(Matrix(*found.groups("replicated")) if found else text)
        if found and terms[-1].split not in PLACEMENTS:
            raise ValueError(f"{text!r} is cut in a way that is none of {', '.join(PLACEMENTS)}")
    return terms


def _draw_line(
    axes: Axes,
    middle: float,
    height: float,
    terms: Terms,
    inches: Mapping[str, float],
    contents: Sequence[str],
    brackets: Mapping[str, Sequence[str]],
) -> None:
    num_ranks = len(contents)
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
        corner, names = (left, middle - tall / 2), brackets.get(term.columns, ())
        _draw_matrix(axes, corner, (wide, tall), term.split, contents, len(names) or 1)
        for number, name in enumerate(names):
            each = wide / len(names)
            ends = left + number * each + 0.03, left + (number + 1) * each - 0.03
            pen.bracket(axes, ends, corner[1] - 0.03, -0.05)
            pen.small(axes, (sum(ends) / 2, corner[1] - 0.1), name, va="bottom")
        label = "\n".join(term.label)
        pen.small(axes, (left + wide / 2, below), label, va="top", linespacing=1.3)
        room = max(wide, LABEL_CHARACTER_INCHES * max(map(len, term.label)))
        left += (wide + room) / 2 + sheets + GAP_INCHES


def _draw_matrix(
    axes: Axes, corner: pen.Pair, size: pen.Pair, split: str, contents: Sequence[str], times: int
) -> None:
    num_ranks = len(contents)
    (left, top), (wide, tall) = corner, size
    if split == "replicated":
        pen.box(axes, corner, size, style.FAINT)
    elif split == "partial":
        for rank in reversed(range(num_ranks)):
            shift = SHEET_INCHES * rank
            pen.box(axes, (left + shift, top - shift), size, style.rank_colour(rank))
    else:
        count = num_ranks * times
        across, down = (1, 0) if split == "columns" else (0, 1)
        each = wide / count if across else wide, tall / count if down else tall
        for index in range(count):
            colour = style.rank_colour(index % num_ranks)
            corner = left + across * index * each[0], top + down * index * each[1]
            name = contents[index % num_ranks] if min(each) >= 0.13 else ""
            pen.named_box(axes, corner, each, name, colour)


def _height(
    terms: Terms,
    inches: Mapping[str, float],
    num_ranks: int,
    brackets: Mapping[str, Sequence[str]],
) -> float:
    matrices = [term for term in terms if isinstance(term, Matrix)]
    sheets = any(matrix.split == "partial" for matrix in matrices)
    bracket = 2 * BRACKET_INCHES * any(matrix.columns in brackets for matrix in matrices)
    tallest = max(inches[matrix.rows] for matrix in matrices)
    return tallest + max(bracket, SHEET_INCHES * num_ranks * sheets)
