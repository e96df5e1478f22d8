"""The seconds of a step under each layout of the ranks: predicted in parts, and measured."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import parts, style

BAR_INCHES, GAP_INCHES = 0.17, 0.12
LEFT_INCHES, RIGHT_INCHES, BOTTOM_INCHES = 1.45, 1.5, 0.46
TITLE_INCHES, KEY_INCHES = 0.34, 0.34
PARTS = {
    "computes": style.COMPUTE,
    "all-reduces over tp": style.AXIS_COLOURS["tp"],
    "idles": style.PAPER,
    "sums gradients": style.AXIS_COLOURS["dp"],
    "software": style.FAINT,
    "measured": style.COMMUNICATION,
}

Layouts = Mapping[str, tuple[Sequence[float], float | None]]


def layout_seconds(layouts: Layouts, title: str | None = None) -> Figure:
    """Two bars per layout: predicted, in parts, above measured.

    layouts: by name, (seconds of each PART but the last, measured seconds); without measured ones,
    None, there is one bar. The title, unless given, names the fastest, and how far off predictions
    were. A bar more than twice as long as those of all other layouts is cut, and says so.
    """
    lengths = sorted(max(sum(shares), measured or 0) for shares, measured in layouts.values())
    longest = min(lengths[-1], 2 * lengths[-2]) if len(lengths) > 1 else lengths[0]
    bars = 1 if all(measured is None for _, measured in layouts.values()) else 2
    pair = bars * BAR_INCHES + GAP_INCHES
    head = TITLE_INCHES + KEY_INCHES
    with style.styled():
        height = head + pair * len(layouts) + BOTTOM_INCHES
        figure = style.new_figure(height, finding(layouts) if title is None else title)
        columns = zip(*(shares for shares, _ in layouts.values()), strict=True)
        seen = [any(column) for column in columns] + [bars == 2]
        named = zip(PARTS.items(), seen, strict=True)
        entries = [(name, colour, 0.14) for (name, colour), there in named if there]
        parts.key(figure, 0.1, TITLE_INCHES + 0.1, entries)
        axes = style.axes_at(figure, LEFT_INCHES, head, RIGHT_INCHES, BOTTOM_INCHES)
        axes.set(xlim=(0, longest), ylim=(pair * len(layouts), 0), xlabel="seconds of a step")
        middles = [number * pair + bars * BAR_INCHES / 2 for number in range(len(layouts))]
        axes.set_yticks(middles, layouts)
        for number, (shares, measured) in enumerate(layouts.values()):
            _draw_pair(axes, number * pair, shares, measured)
    return figure


def finding(layouts: Layouts) -> str:
    """Which layout is the fastest, and the range of measured over predicted seconds.

    Measured times within 5 % of the least are a tie.
    """
    predicted = min(layouts, key=lambda name: sum(layouts[name][0]))
    if any(measured is None for _, measured in layouts.values()):
        return f"{predicted} is predicted to be the fastest"
    measured = min(layouts, key=lambda name: layouts[name][1])
    ratios = [seconds / sum(shares) for shares, seconds in layouts.values()]
    range_of = f"{min(ratios):.2f} to {max(ratios):.2f}"
    close = [name for name in layouts if layouts[name][1] <= 1.05 * layouts[measured][1]]
    named = "as predicted" if measured == predicted else f"not {predicted}"
    told = f"{measured} wins, {named}"
    if len(close) > 1:
        there = "with" if predicted in close else "without"
        told = f"{len(close)} layouts tie, {there} {predicted}"
    return f"{told}; measured / predicted {range_of}"


def _draw_pair(axes: Axes, top: float, seconds: Sequence[float], measured: float | None) -> None:
    start, y, height = 0.0, top + BAR_INCHES / 2, BAR_INCHES - 0.02
    for length, colour in zip(seconds, PARTS.values(), strict=False):
        idle = colour == style.PAPER  # its edge is all that is seen of it, so it lies on top
        edge = style.FAINT if idle else style.PAPER
        look = {"color": colour, "edgecolor": edge, "linewidth": 0.6, "zorder": 2 if idle else 1}
        axes.barh(y, length, height, start, **look)
        start += length
    _name(axes, start, y, "predicted")
    if measured is not None:
        axes.barh(y + BAR_INCHES, measured, height, color=PARTS["measured"])
        _name(axes, measured, y + BAR_INCHES, "measured")


def _name(axes: Axes, seconds: float, y: float, word: str) -> None:
    """What a bar stands for, behind its end."""
    right = axes.get_xlim()[1]
    told = f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
    text = f"{told} s {word}" + (", cut" if seconds > 1.001 * right else "")
    parts.behind(axes, min(seconds, right), y, text)
