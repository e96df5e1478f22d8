"""Explorers for a notebook: each change of a control runs real ranks and redraws their picture."""

import ipywidgets

from byhand.demonstrations import MOST_RANKS, NAMES, ROOTED, demonstrate, picture


def collective_explorer(name: str = "broadcast", world_size: int = 4) -> ipywidgets.VBox:
    """Choose the collective, the number of ranks and the root; see who holds what.

    Each choice launches that many ranks. What goes wrong is shown as a sentence in the picture's
    place.
    """
    # The picture is an Image and not an Output: nbclient can wait for ever for a cell that draws
    # into an Output (its answer to the widget may hide the cell's reply).
    shown, sentence = ipywidgets.Image(format="png"), ipywidgets.Label()
    choices = {
        "name": ipywidgets.Dropdown(options=NAMES, value=name, description="collective"),
        "world_size": _slider("ranks", world_size, 1, MOST_RANKS),
        "root": _slider("root", 0, 0, world_size - 1),
    }

    def draw(_=None) -> None:
        choices["root"].max = choices["world_size"].value - 1
        choices["root"].disabled = choices["name"].value not in ROOTED
        png, width, sentence.value = draw_collective(*(box.value for box in choices.values()))
        shown.value, shown.width = png, str(width)
        shown.layout.display = None if png else "none"

    for box in choices.values():
        box.observe(draw, "value")
    draw()
    return ipywidgets.VBox([ipywidgets.HBox(list(choices.values())), shown, sentence])


def draw_collective(name: str, world_size: int, root: int) -> tuple[bytes, int, str]:
    """A demonstration's picture (PNG), its width in pixels, and "";
    or no picture, and the sentence that says why."""
    try:
        png, size = picture(demonstrate(name, world_size, root))._repr_png_()
    except Exception as error:
        return b"", 0, f"{type(error).__name__}: {error}"
    return png, size["width"], ""


def _slider(label: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    # Without continuous updates a drag launches ranks once, where it ends.
    return ipywidgets.IntSlider(value, least, most, description=label, continuous_update=False)
