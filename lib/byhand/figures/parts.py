"""What several figures draw: stacked bars, names where there is room, keys, arrows, line ends."""

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


def name_inside(axes: Axes, middle, length: float, text: str, colour) -> bool:
    """`text` in the middle of a box `length` long, in x's units, if it fits; whether it does."""
    if not fits(axes, length, text):
        return False
    look = {"color": style.readable_on(colour), "fontsize": style.SMALL_POINTS}
    axes.text(*middle, text, ha="center", va="center_baseline", **look)
    return True


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
    place = (end + 0.06 / inches_per_unit(axes), y)
    axes.text(*place, text, va="center_baseline", fontsize=style.SMALL_POINTS)


def rank_rows(axes: Axes, num_ranks: int) -> None:
    """Names the rows, rank 0 on top."""
    axes.set_yticks(range(num_ranks), [f"rank {rank}" for rank in range(num_ranks)])


def key(figure: Figure, left: float, middle: float, entries: Iterable[tuple]) -> None:
    """A box and its meaning for each (text, colour, height of the box), side by side."""
    axes = style.canvas(figure)
    for text, colour, height in entries:
        look = {"facecolor": colour, "edgecolor": style.FAINT, "linewidth": 0.8}
        axes.add_patch(Rectangle((left, middle - height / 2), 0.16, height, **look))
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
    box = {"boxstyle": "round,pad=0.16", "fc": colour, "ec": "none"}
    look = {"color": style.readable_on(colour), "fontsize": style.SMALL_POINTS, "bbox": box}
    axes.text(*place, text, ha="center", va="center", zorder=4, **look)


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
