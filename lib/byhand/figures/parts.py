"""What several figures draw: boxes, names where there is room, stacked bars, keys, arrows."""

from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byhand.figures import style

CHARACTER_INCHES = 0.08  # of 8-point text
LINE_INCHES = 0.17  # of 9-point text


def inches_per_unit(axes: Axes) -> float:
    """How long a unit of x is drawn."""
    least, most = axes.get_xlim()
    return axes.get_position().width * style.WIDTH_INCHES / (most - least)


def fits(axes: Axes, length: float, text: str) -> bool:
    """Whether `text` has room in a box `length` long, in x's units."""
    return length * inches_per_unit(axes) >= CHARACTER_INCHES * len(text)


def box(axes: Axes, corner, size, colour, edge=style.PAPER, width: float = 0.8) -> None:
    """A rectangle, (wide, tall) from its corner on, with an edge of `width` points."""
    look = {"facecolor": colour, "edgecolor": edge, "linewidth": width}
    axes.add_patch(Rectangle(corner, *size, **look))


def small(axes: Axes, place, text: str, **look) -> None:
    """8-point text; where `look` says nothing else, `place` is its middle."""
    look = {"ha": "center", "va": "center_baseline", "fontsize": style.SMALL_POINTS, **look}
    axes.text(*place, text, **look)


def at_right(axes: Axes, y: float, text: str, points: float, **look) -> None:
    """Text beside the axes' right edge, at `y`, so many points off."""
    place = {"xy": (1, y), "xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    axes.annotate(text, xytext=(points, 0), **place, **{"va": "center", **look})


def name_inside(axes: Axes, middle, length: float, text: str, colour) -> bool:
    """`text` in the middle of a box `length` long, in x's units, if it fits; whether it does."""
    if not fits(axes, length, text):
        return False
    small(axes, middle, text, color=style.readable_on(colour))
    return True


def named_box(canvas: Axes, corner, size, names: Iterable[str], colour, edge=style.PAPER) -> None:
    """A box, and in it the first of the names that fits."""
    box(canvas, corner, size, colour, edge, 1)
    middle = (corner[0] + size[0] / 2, corner[1] + size[1] / 2)
    any(name_inside(canvas, middle, size[0], name, colour) for name in names)


def stack(axes: Axes, y: float, height: float, parts: Iterable[tuple], text: str) -> None:
    """Bars end to end, (name, length, colour) each, and `text` behind the last."""
    start = 0.0
    for name, length, colour in parts:
        look = {"color": colour, "edgecolor": style.PAPER, "linewidth": 0.8}
        axes.barh(y, length, height, start, **look)
        name_inside(axes, (start + length / 2, y), length, name, colour)
        start += length
    behind(axes, start, y, text)


def behind(axes: Axes, end: float, y: float, text: str) -> None:
    """`text` behind the end of a bar."""
    small(axes, (end + 0.06 / inches_per_unit(axes), y), text, ha="left")


def rank_rows(axes: Axes, num_rows: int, first: float = 0.0, word: str = "rank") -> None:
    """Names the rows, rank 0 on top, at y = first."""
    ticks = {first + row: f"{word} {row}" for row in range(num_rows)}
    axes.set_yticks(list(ticks), list(ticks.values()))


def key(figure: Figure, left: float, middle: float, entries: Iterable[tuple]) -> None:
    """A box and its meaning for each (text, colour, height of the box), side by side."""
    axes = style.canvas(figure)
    for text, colour, height in entries:
        box(axes, (left, middle - height / 2), (0.16, height), colour, style.FAINT)
        axes.text(left + 0.22, middle, text, va="center", fontsize=style.TEXT_POINTS)
        left += 0.44 + len(text) * 0.068


def arrow(axes: Axes, tail, head, colour=style.INK, width: float = 1.3) -> None:
    """From `tail` to `head`."""
    look = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=head, xytext=tail, arrowprops=look)


def badge(axes: Axes, place, text: str, colour) -> None:
    """A small box in `colour` with `text` in it, or a dot where there is none."""
    if not text:
        axes.plot(*place, "o", color=colour, markersize=4.5)
        return
    around = {"boxstyle": "round,pad=0.16", "fc": colour, "ec": "none"}
    look = {"color": style.readable_on(colour), "va": "center", "zorder": 4}
    small(axes, place, text, bbox=around, **look)


def name_ends(axes: Axes, ends: Mapping[str, float], colours: Mapping[str, str]) -> None:
    """Each line's name at the height where it ends, moved down where two would touch."""
    height = axes.get_position().height * axes.figure.get_figheight()
    scale, x = axes.transScale + axes.transLimits, axes.get_xlim()[1]
    shares = {name: scale.transform((x, end))[1] for name, end in ends.items()}
    taken = float("inf")
    for name in sorted(shares, key=lambda name: -shares[name]):
        taken = min(shares[name] * height, taken - LINE_INCHES)
        look = {"color": colours[name], "fontsize": style.TEXT_POINTS, "va": "center"}
        place = {"xy": (1, taken / height), "xycoords": "axes fraction"}
        axes.annotate(name, xytext=(6, 0), textcoords="offset points", **place, **look)
