"""Two drawings of lecture 18: how far losses are from one device's; a pipeline's two tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EQUAL = 3e-8  # where a distance of zero is drawn: below the smallest that float32 can show


def two_tables(title: str) -> Figure:
    """A pipeline of two stages, whose ends both have the embedding's table."""
    from byhand.figures import pen, style

    blue, pale = style.COMPUTE, "#cfd9e3"
    stages = {
        0.1: [("table", blue), ("block 1", pale), ("block 2", pale)],
        3.95: [("block 3", pale), ("block 4", pale), ("table", blue)],
    }
    with style.drawing(1.75, title) as (figure, axes):
        for number, (left, layers) in enumerate(stages.items()):
            look = {"ha": "left", "fontsize": style.TEXT_POINTS}
            pen.small(axes, (left, 0.45), f"rank {number}, stage {number}", **look)
            for place, (name, colour) in enumerate(layers):
                pen.named_box(axes, (left + place, 0.58), (0.94, 0.5), name, colour)
        pen.arrow(axes, (3.08, 0.74), (3.9, 0.74))
        pen.small(axes, (3.49, 0.62), "activations")
        pen.arrow(axes, (3.9, 0.94), (3.08, 0.94))
        pen.small(axes, (3.49, 1.08), "gradients")
        ends, red = (0.57, 6.42), "#d55e00"
        axes.plot(
            [ends[0], ends[0], ends[1], ends[1]], [1.12, 1.5, 1.5, 1.12], color=red, lw=1.6, ls="--"
        )
        told = "the missing line: it adds both gradients, for both tables"
        paper = {"fc": style.PAPER, "ec": "none", "pad": 2}
        look = {"color": red, "fontsize": style.TEXT_POINTS, "bbox": paper}
        pen.small(axes, (3.5, 1.5), told, **look)
        pen.small(axes, (ends[0] + 0.1, 1.22), "looks tokens up", color=blue, ha="left")
        pen.small(axes, (ends[1] - 0.1, 1.22), "scores tokens", color=blue, ha="right")
    return figure


def drift(quiet: Mapping[str, Sequence[float]], title: str) -> Figure:
    """A curve a way: its loss's distance from one device, by powers of ten; dashed, its average."""
    from byhand.figures import curves, style

    shown = {name: [one or EQUAL for one in away] for name, away in quiet.items()}
    figure = curves(
        shown,
        "step (dashed: averages)",
        "distance from one device's loss",
        title,
        log_y=True,
        widths=(2,),
    )
    axes = figure.axes[0]
    axes.autoscale(False)  # names stay at the ends of their lines
    for line, away in zip(list(axes.lines), quiet.values(), strict=True):
        mean, dashes = sum(away) / len(away), (0, (3, 2))
        axes.axhline(mean, color=line.get_color(), linewidth=1, linestyle=dashes)
    axes.axhspan(EQUAL / 2, 1e-6, color=style.FAINT, alpha=0.5, linewidth=0)
    at = 7, 1.7e-6
    small = style.SMALL_POINTS
    axes.annotate("below: rounding", at, fontsize=small, va="center", color=style.INK)
    axes.set_yticks([EQUAL, 1e-6, 1e-4, 1e-2], ["equal", "1e-6", "1e-4", "1e-2"])
    axes.minorticks_off()
    return figure
