"""What every figure must be: its words stand apart, inside the page, large and dark enough."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from byhand.figures import style

SQUARE = "■"  # of a colour, beside its name


def texts(figure: Figure) -> list[Text]:
    """What it shows in letters."""
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def words(figure: Figure) -> list[str]:
    """The same as strings."""
    return [text.get_text() for text in texts(figure)]


def _out_of_view(figure: Figure) -> Iterator[Text]:
    """The labels of ticks that matplotlib keeps and does not draw."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        least, most = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        yield from (tick.label1 for tick in ticks if not least <= tick.get_loc() <= most)


def assert_readable(figure: Figure) -> None:
    """No text is small, cut off, under another, or faint on what it stands on."""
    assert [text.get_text() for text in texts(figure) if text.get_fontsize() < 8] == []
    figure.draw_without_rendering()
    drawn = set(texts(figure)) - set(_out_of_view(figure))
    boxes = [(text.get_text(), text.get_window_extent()) for text in drawn]
    page = figure.bbox
    for text, box in boxes:
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1
        assert inside, f"{text!r} is cut off"
    for (a, first), (b, second) in combinations(boxes, 2):
        assert not first.overlaps(second), f"{a!r} lies over {b!r}"
    for text, ratio in faint(figure, {text for text in drawn if text.get_text() != SQUARE}):
        raise AssertionError(f"{text!r} has a contrast of {ratio:.2f} with what it stands on")


def faint(figure: Figure, drawn: set[Text]) -> Iterator[tuple[str, float]]:
    """Texts, and their contrast with what lies under them, where it is too little."""
    boxes = {text: text.get_window_extent() for text in drawn}
    for text in drawn:
        text.set_alpha(0)  # seen, so that the layout stays
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    below = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255  # rows go up, as boxes do
    for text, box in boxes.items():
        text.set_alpha(None)
        rows, columns = slice(int(box.y0), int(box.y1) + 1), slice(int(box.x0), int(box.x1) + 1)
        found = style.contrast(text.get_color(), np.median(below[rows, columns], axis=(0, 1)))
        if found < style.READABLE:
            yield text.get_text(), found
