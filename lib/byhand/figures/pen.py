"""What several figures draw: boxes, names where there is room, stacked bars, keys, arrows."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import blended_transform_factory
from matplotlib.typing import ColorType

from byhand.figures import style

CHARACTER_INCHES = 0.08  # of 8-point text
LINE_INCHES = 0.17  # of 9-point text
MARGIN_INCHES = 0.04  # beside a name in a stacked bar
Pair = tuple[float, float]  # across and down


def inches_per_unit(axes: Axes) -> float:
    """How long a unit of x is drawn."""
    least, most = axes.get_xlim()
    return axes.get_position().width * style.WIDTH_INCHES / (most - least)


def fits(axes: Axes, length: float, text: str) -> bool:
    """Whether `text` has room in a box `length` long, in x's units, and a little beside it."""
    return length * inches_per_unit(axes) >= CHARACTER_INCHES * (len(text) + 0.25)


def box(
    axes: Axes,
    corner: Pair,
    size: Pair,
    colour: ColorType,
    edge: ColorType = style.PAPER,
    width: float = 0.8,
) -> None:
    """A rectangle, (wide, tall) from its corner on, with an edge of `width` points."""
    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor=edge, linewidth=width))


def small(axes: Axes, point: Pair, text: str, **look: Any) -> None:
    """8-point text; where `look` says nothing else, `point` is its middle."""
    look = {"ha": "center", "va": "center_baseline", "fontsize": style.SMALL_POINTS, **look}
    axes.text(*point, text, **look)


def beside(axes: Axes, point: Pair, text: str, points: float = 4, **look: Any) -> None:
    """8-point text so many points right of a point."""
    look = {"fontsize": style.SMALL_POINTS, "va": "center", "annotation_clip": False, **look}
    axes.annotate(text, point, (points, 0), textcoords="offset points", **look)


def at_right(axes: Axes, y: float, text: str, points: float, **look: Any) -> None:
    """The same beside the axes' right edge, at `y`."""
    beside(axes, (1, y), text, points, xycoords=axes.get_yaxis_transform(), **look)


def name_inside(
    axes: Axes, middle: Pair, length: float, name: str | Sequence[str], colour: ColorType
) -> None:
    """In the middle of a box `length` long, in x's units, the first of the names that fits."""
    for text in [name] if isinstance(name, str) else name:
        if text and fits(axes, length - MARGIN_INCHES / inches_per_unit(axes), text):
            small(axes, middle, text, color=style.readable_on(colour))
            return


def named_box(axes: Axes, corner: Pair, size: Pair, text: str, colour: ColorType) -> None:
    """A box with its name in the middle."""
    box(axes, corner, size, colour)
    middle = corner[0] + size[0] / 2, corner[1] + size[1] / 2
    small(axes, middle, text, color=style.readable_on(colour))


def bracket(axes: Axes, ends: Pair, y: float, height: float) -> None:
    """A bracket from `y` on, over or under what lies between its ends."""
    (left, right), tip = ends, y + height
    across, up = [left, left, right, right], [y, tip, tip, y]
    axes.plot(across, up, color=style.INK, lw=1, clip_on=False)


def stack(axes: Axes, y: float, height: float, parts: Iterable[tuple], start: float = 0) -> float:
    """Bars end to end, (name, length, colour) each, from `start`; where the last one ends.

    White bars have an edge that is seen.
    """
    for name, length, colour in parts:
        if length:
            edge = style.FAINT if colour == style.PAPER else style.PAPER
            box(axes, (start, y - height / 2), (length, height), colour, edge)
            name_inside(axes, (start + length / 2, y), length, name, colour)
        start += length
    return start


def rows(axes: Axes, names: Iterable[str]) -> None:
    """A row for each name, the first on top, at y = 0, 1, ..."""
    names = list(names)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def ranks(number: int, word: str = "rank") -> list[str]:
    """Their rows' names."""
    return [f"{word} {rank}" for rank in range(number)]


def key(axes: Axes, colours: Mapping[str, object], height: float = 1, inches: float = 0.0) -> None:
    """A box and its meaning for each colour, from the page's left edge.

    It stands `height` axes up, and these inches above that.
    """
    if colours:
        entries = [Patch(fc=c, ec=style.FAINT, label=name) for name, c in colours.items()]
        across = blended_transform_factory(axes.figure.transFigure, axes.transAxes)
        look: dict[str, Any] = {
            "loc": "lower left",
            "bbox_to_anchor": ((0.1 - inches) / style.WIDTH_INCHES, height),
        }
        pad = 0.3 + 72 * inches / style.TEXT_POINTS
        look |= {"bbox_transform": across, "borderaxespad": pad, "borderpad": 0}
        axes.legend(handles=entries, ncols=len(entries), **look)


def arrow(
    axes: Axes,
    tail: Pair,
    head: Pair,
    colour: ColorType = style.INK,
    width: float = 1.3,
    **look: Any,
) -> None:
    """From `tail` to `head`."""
    look = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0, **look}
    axes.annotate("", xy=head, xytext=tail, arrowprops=look)


def badge(axes: Axes, point: Pair, text: str, colour: ColorType) -> None:
    """A small box in `colour` with `text` in it, or a dot where there is none."""
    if not text:
        axes.plot(*point, "o", color=colour, markersize=4.5)
        return
    paper = {"boxstyle": "round,pad=0.16", "fc": colour, "ec": "none"}
    look = {"color": style.readable_on(colour), "va": "center", "zorder": 4}
    small(axes, point, text, bbox=paper, **look)


def name_ends(axes: Axes, ends: Mapping[str, float], colours: Mapping[str, str]) -> None:
    """Each line's name at the height where it ends, or near it where two would touch."""
    style.settle(axes.figure.figure)
    height = axes.get_position().height * axes.figure.figure.get_figheight()
    scale, x = axes.transScale + axes.transLimits, axes.get_xlim()[1]
    shares = {name: scale.transform((x, end))[1] for name, end in ends.items()}
    names = sorted(shares, key=lambda name: -shares[name])
    places = apart([shares[name] * height for name in names], LINE_INCHES)
    for name, place in zip(names, places, strict=True):
        look = {"fontsize": style.TEXT_POINTS, "xycoords": "axes fraction"}
        colour = style.legible(colours[name])
        beside(axes, (1, place / height), name, 6, color=colour, **look)


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Falling heights, moved as little as may be, so that each is `gap` or more below the last."""
    groups: list[list[float]] = []  # whose members stand one below the other, around their mean
    for number, height in enumerate(heights):
        groups.append([height + number * gap])
        while len(groups) > 1 and mean(groups[-2]) < mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    middles = [mean(group) for group in groups for _ in group]
    return [middle - number * gap for number, middle in enumerate(middles)]
