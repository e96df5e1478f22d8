"""A figure that time uncovers, again and again: an SVG that is animated without a script."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures.style import INK, PAPER, save_svg

POINTS_PER_INCH = 72
# Shares of a round: the axes are uncovered until the first, and stay whole until the end.
SHOWN, ROUND_SECONDS = 0.8, 9
_STYLE = "<style>@media (prefers-reduced-motion: reduce) { .cover { display: none } }</style>"


def save_animated_svg(figure: Figure, path: str | Path) -> None:
    """Write `figure` as SVG, its axes covered and uncovered from left to right as time goes by."""
    buffer = io.StringIO()
    save_svg(figure, buffer)
    covers = "".join(_cover(figure, axes) for axes in figure.axes if axes.axison)
    text = buffer.getvalue()
    Path(path).write_text(text[: text.rindex("</svg>")] + _STYLE + covers + "</svg>\n")


def _cover(figure: Figure, axes: Axes) -> str:
    """A sheet of paper over the axes, whose left edge walks to the right."""
    wide, high = (POINTS_PER_INCH * inches for inches in figure.get_size_inches())
    box = axes.get_position()
    left, right, top = box.x0 * wide, box.x1 * wide, (1 - box.y1) * high
    height = (box.y1 - box.y0) * high
    walks = _walk("x", left, right) + _walk("width", right - left, 0)
    sheet = f'<rect x="{right:.1f}" y="{top:.1f}" width="0" height="{height:.1f}" fill="{PAPER}">'
    edge = f'<rect x="{right:.1f}" y="{top:.1f}" width="1" height="{height:.1f}" fill="{INK}">'
    return f'<g class="cover">{sheet}{walks}</rect>{edge}{_walk("x", left, right)}</rect></g>'


def _walk(attribute: str, start: float, end: float) -> str:
    values = f"{start:.1f};{end:.1f};{end:.1f}"
    return (
        f'<animate attributeName="{attribute}" values="{values}" keyTimes="0;{SHOWN};1" '
        f'dur="{ROUND_SECONDS}s" repeatCount="indefinite"/>'
    )
