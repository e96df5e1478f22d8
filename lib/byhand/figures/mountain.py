"""What a rank holds, over a training step: constant layers at the foot, and what comes and goes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from byhand.figures import pen, style

BINS = 400  # of a step's operations: of each, the most is drawn
ON_TOP = style.STATE_COLOURS["activations"]


class Held(NamedTuple):
    """A step: bytes held after each operation; of them those by kind that stay; where phases end.

    phases: {name: number of its last operation}, in their order.
    """

    samples: Sequence[float]
    stays: Mapping[str, float]
    phases: Mapping[str, int]


def mountain(
    panels: Mapping[str, Held], title: str, on_top: str = "activations"
) -> style.CourseFigure:
    """A panel for each step, all to one scale: megabytes over the operations of the step."""
    most = max(max(panel.samples) for panel in panels.values()) / 1e6
    longest = max(len(panel.samples) for panel in panels.values())
    height = 1.25 + (2.0 if len(panels) == 1 else 1.35) * len(panels)
    with style.plot(height, title, len(panels), 1, squeeze=False) as (figure, grid):
        for axes, (name, panel) in zip(grid[:, 0], panels.items(), strict=True):
            _draw(axes, panel, (longest, most), on_top)
            axes.set_title(name, loc="left", fontsize=style.TEXT_POINTS)
            axes.set_ylabel("MB held")
        axes.set_xlabel("operations of torch, one after another", labelpad=26)
        first = next(iter(panels.values()))
        colours = {kind: style.wire_colour(kind) for kind in first.stays} | {on_top: ON_TOP}
        pen.key(grid[0, 0], colours, 1 + any(panels) * (0.2 if len(panels) == 1 else 0.3))
    return figure


def _draw(axes: Axes, panel: Held, whole: tuple[int, float], on_top: str) -> None:
    longest, most = whole
    samples = [value / 1e6 for value in panel.samples]
    each = max(1, len(samples) // BINS)
    tops = [max(samples[i : i + each]) for i in range(0, len(samples), each)]
    over, floor = [i * each for i in range(len(tops))], 0.0
    for kind, num_bytes in panel.stays.items():
        higher = floor + num_bytes / 1e6
        axes.fill_between(over, floor, higher, color=style.wire_colour(kind), linewidth=0)
        floor = higher
    axes.fill_between(over, floor, tops, color=ON_TOP, linewidth=0)
    axes.set(xlim=(0, longest), ylim=(0, 1.18 * most), xticks=[])
    axes.tick_params(left=True)
    peak = max(range(len(tops)), key=tops.__getitem__)
    axes.plot([over[peak]], [tops[peak]], "o", color=style.INK, markersize=3.5)
    pen.beside(axes, (over[peak], tops[peak]), f"{tops[peak]:.1f} MB", 5, va="bottom")
    start = 0
    for number, (phase, end) in enumerate(panel.phases.items()):
        if number:
            axes.axvline(start, color=style.INK, linewidth=0.8, linestyle=(0, (3, 3)))
        pen.small(axes, ((start + end) / 2, -0.1 * most), phase, va="top", clip_on=False)
        start = end
