"""The look that all figures share: one palette, one width, one type size, and a reproducible SVG.

Ranks have one colour each, collectives one each and mesh axes one each, everywhere in the course.
The hues are those of Okabe and Ito (ranks, axes) and of Paul Tol (collectives), made for
colour-blind readers.
"""

import io
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from byhand.figures.alt import as_image
from byhand.words import scaled

INK, FAINT, PAPER = "#1b2733", "#c9d1d9", "#ffffff"
COMPUTE, COMMUNICATION, WAITING = "#1f4e79", "#9aa5b1", PAPER
RANK_COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7"),
    *("#56b4e9", "#d55e00", "#f0e442", "#7f7f7f"),
)
OP_COLOURS = {
    "all_reduce": "#332288",
    "reduce_scatter": "#44aa99",
    "all_gather": "#88ccee",
    "broadcast": "#ddcc77",
    "reduce": "#cc6677",
    "scatter": "#999933",
    "gather": "#117733",
    "all_to_all": "#aa4499",
    "send": "#882255",
    "recv": "#dddddd",
    "barrier": "#bbbbbb",
}
HELD_COLOURS = {"copies": "#f2d49b", "its own": COMPUTE}  # what other ranks hold too, or not
AXIS_COLOURS = {
    "tp": "#0072b2",
    "cp": "#cc79a7",
    "ep": "#e69f00",
    "dp": "#d55e00",
    "pp": "#009e73",
}  # one hue per mesh axis, everywhere in the course
STATE_COLOURS = {
    "weights": "#1f4e79",
    "gradients": "#d08f3a",
    "optimizer": "#9aa5b1",
    "activations": "#009e73",
}  # what training holds
MOMENT_COLOURS = {"for a moment": "#00523d"}  # and beside that
Layout = Literal["constrained", None]  # whether axes make room for their texts
WIDTH_INCHES = 7.0
READABLE = 4.5  # contrast of a text with what it stands on: AA
TEXT_POINTS, SMALL_POINTS, SCREEN_DPI = 9, 8, 110
TITLE: dict[str, Any] = {"fontsize": 10.5, "weight": "bold"}
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT_POINTS,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT_POINTS,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "xtick.color": INK,
    "xtick.labelsize": TEXT_POINTS,
    "ytick.color": INK,
    "ytick.labelsize": TEXT_POINTS,
    "ytick.left": False,
    "figure.facecolor": PAPER,
    "figure.dpi": SCREEN_DPI,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.07,
    "legend.frameon": False,
    "legend.handlelength": 1.3,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.4,
}


def styled() -> AbstractContextManager:
    """The course's matplotlib settings, for the length of a `with` block."""
    return matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE})


class CourseFigure(Figure):
    """A Figure that shows itself in a notebook, with or without pyplot, crisp at any size."""

    def _repr_html_(self) -> str:
        return as_image(self.svg())

    def svg(self) -> str:
        """As a drawing, with its title in it."""
        buffer = io.StringIO()
        save_svg(self, buffer)
        return buffer.getvalue()

    def png(self) -> tuple[bytes, int]:
        """As pixels, and how wide it is meant to be seen: for a page without a kernel."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=2 * SCREEN_DPI)
        return buffer.getvalue(), round(self.get_figwidth() * SCREEN_DPI)


def new_figure(height_inches: float, title: str = "", layout: Layout = None) -> CourseFigure:
    """An empty figure of the course's width with its title at the top left."""
    figure = CourseFigure((WIDTH_INCHES, height_inches), layout=layout)
    left, top = 0.1 / WIDTH_INCHES, 1 - 0.08 / height_inches
    figure.suptitle(title, x=left, y=None if layout else top, ha="left", va="top", **TITLE)
    return figure


def canvas(figure: Figure) -> Axes:
    """Axes over the whole figure, measured in inches from its top left corner."""
    axes = figure.add_axes((0, 0, 1, 1))
    bare(axes, xlim=(0, figure.get_figwidth()), ylim=(figure.get_figheight(), 0))
    return axes


def bare(axes: Axes, **look: Any) -> None:
    """Axes that show neither ticks nor lines of their own."""
    axes.set(xticks=[], yticks=[], **look)
    axes.axis("off")


@contextmanager
def drawing(height: float, title: str) -> Iterator[tuple[CourseFigure, Axes]]:
    """A new figure and its `canvas`; `styled` meanwhile."""
    with styled():
        figure = new_figure(height, title)
        yield figure, canvas(figure)


@contextmanager
def plot(height: float, title: str, *shape: int, **look: Any) -> Iterator[tuple[CourseFigure, Any]]:
    """A new figure, and axes in it that make room for their texts; `styled` meanwhile.

    shape, look: of several axes, as for `Figure.subplots`.
    """
    with styled():
        figure = new_figure(height, title, "constrained")
        yield figure, figure.subplots(*shape, **look)


def settle(figure: Figure) -> None:
    """Lay the axes out now, so that what is drawn next can tell how much room it has."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def rank_colour(rank: int) -> str:
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


def axis_colour(name: str) -> str:
    """The hue of a mesh axis, or of groups such as "tp-pp": the first's.

    "expert-dp" and "dp_shard" have dp's; embedding groups, the ends of a pipeline, have pp's.
    """
    first = re.split("[-_]", name.removeprefix("expert-"))[0]
    return AXIS_COLOURS["pp" if "embedding" in name else first]


def group_colour(name: str) -> str:
    """The axis' hue, darker for experts' and embedding groups, which stand beside the axis' own."""
    strength = 0.62 if name.startswith("expert-") or "embedding" in name else 1.0
    red, green, blue = to_rgb(axis_colour(name))
    return to_hex((strength * red, strength * green, strength * blue))


def wire_colour(name: str) -> str:
    """The colour of a collective, a mesh axis, or of what is held; grey for what is none."""
    known = {**OP_COLOURS, **AXIS_COLOURS, **HELD_COLOURS, **STATE_COLOURS, **MOMENT_COLOURS}
    return known.get(name, COMMUNICATION)


def tint(colour: ColorType, strength: float) -> tuple[float, float, float]:
    """The colour mixed with the paper: 1 is the colour itself, 0 the paper."""
    pairs = zip(to_rgb(colour), to_rgb(PAPER), strict=True)
    red, green, blue = (strength * ours + (1 - strength) * paper for ours, paper in pairs)
    return red, green, blue


def readable_on(colour: ColorType) -> str:
    """Ink on `colour`, or white where that is too dark for ink; black where it is for both."""
    return next(text for text in (INK, PAPER, "#000000") if contrast(text, colour) >= READABLE)


def legible(colour: ColorType) -> str:
    """The hue as the colour of a text on paper: darker, where it would be faint."""
    red, green, blue = to_rgb(colour)
    steps = (step / 20 for step in range(20, 0, -1))
    shades = (to_hex((step * red, step * green, step * blue)) for step in steps)
    return next(shade for shade in shades if contrast(shade, PAPER) >= READABLE)


def contrast(one: ColorType, other: ColorType) -> float:
    """How much lighter one is than the other, from 1 to 21. Source: WCAG 2.2, contrast ratio."""
    darker, lighter = sorted(map(_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: ColorType) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def seconds_text(seconds: float) -> str:
    """0.0015 -> '1.5 ms'."""
    return scaled(seconds, {1.0: "s", 1e-3: "ms", 1e-6: "µs", 1e-9: "ns"})


def save_svg(figure: Figure, path: str | Path | io.StringIO, text: str = "path") -> None:
    """Write `figure` as SVG, with its first words as title; the same bytes on any day.

    text: matplotlib's svg.fonttype; "none" leaves it text, which needs a font to be seen.
    """
    texts = [each.get_text() for part in (figure, *figure.subfigs) for each in part.texts]
    title = next((" ".join(each.split()) for each in texts if each), "")
    with matplotlib.rc_context({"svg.hashsalt": "byhand", "svg.fonttype": text}):
        figure.savefig(path, format="svg", metadata={"Date": None, "Title": title})
