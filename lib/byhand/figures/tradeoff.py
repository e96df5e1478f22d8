"""How many rounds, and how much the busiest rank sends: an algorithm is a point."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from byhand.figures import style

HEIGHT_INCHES = 3.2


def tradeoff(points: Mapping[str, tuple[float, float]], title: str) -> Figure:
    """points: by name, (rounds, tensors sent by the busiest rank). Lower left is better.

    Algorithms at one place share a point, and a line of text.
    """
    places: dict[tuple[float, float], list[str]] = {}
    for name, (rounds, tensors) in points.items():
        places.setdefault((rounds, round(tensors, 1)), []).append(name)
    with style.styled():
        figure = style.new_figure(HEIGHT_INCHES, title)
        axes = style.axes_at(figure, 0.72, 0.5, 0.25, 0.55)
        most = max(rounds for rounds, _ in places)
        axes.set(xscale="log", xlim=(0.6 * min(r for r, _ in places), 1.6 * most))
        axes.set(xlabel="rounds, on a logarithmic scale", ylabel="tensors sent by the busiest rank")
        axes.set_ylim(0, 1.25 * max(tensors for _, tensors in places))
        ticks = sorted({rounds for rounds, _ in places})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.grid(axis="y", color=style.FAINT, linewidth=0.6)
        for place, names in places.items():
            axes.plot(*place, "o", color=style.OP_COLOURS["all_reduce"], markersize=8)
            _name(axes, place, "\n".join(names), below=place[1] == min(y for _, y in places))
    return figure


def _name(axes: Axes, place: tuple[float, float], text: str, below: bool) -> None:
    look = {"fontsize": style.TEXT_POINTS, "linespacing": 1.25, "textcoords": "offset points"}
    look |= {"va": "top", "xytext": (0, -9)} if below else {"va": "bottom", "xytext": (0, 8)}
    axes.annotate(text, place, ha="center", **look)
