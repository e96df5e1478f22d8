"""What every figure must be: its words stand apart, inside the page, and large enough to read."""

from collections.abc import Iterator
from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text


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
    """No text is small, cut off, or under another."""
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
