"""Explorers for a notebook: each change of a control runs real ranks and redraws their picture."""

import html
from collections.abc import Callable

import ipywidgets

from byhand.all_reduce.lab import PLANS, watch_rounds
from byhand.collectives.lab import MOST_RANKS, NAMES, ROOTED, demonstrate, picture
from byhand.runtime import RankError


def collective_explorer(name: str = "broadcast", world_size: int = 4) -> ipywidgets.VBox:
    """Choose the collective, the number of ranks and the root; see who holds what.

    Each choice launches that many ranks. What goes wrong is shown as a sentence in the picture's
    place.
    """
    collective = ipywidgets.Dropdown(options=NAMES, value=name, description="collective")
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    root = slider("root", 0, 0, world_size - 1)

    def drawn(name: str, world_size: int, _: int) -> tuple[bytes, int, str]:
        root.max = world_size - 1  # which may lower the root's value
        root.disabled = name not in ROOTED
        return draw_collective(name, world_size, root.value)

    return explorer([[collective, ranks, root]], drawn)


def draw_collective(name: str, world_size: int, root: int) -> tuple[bytes, int, str]:
    """A demonstration's picture (PNG), its width in pixels, and "";
    or no picture, and the sentence that says why."""
    try:
        png, size = picture(demonstrate(name, world_size, root))._repr_png_()
    except Exception as error:
        return b"", 0, f"{type(error).__name__}: {error}"
    return png, size["width"], ""


def all_reduce_explorer(name: str = "ring", world_size: int = 4) -> ipywidgets.VBox:
    """Choose the algorithm, the ranks and the tensor; go through the rounds by hand, or play them.

    Each choice runs it once on that many ranks; the sentence is what the run's ledger says. What
    goes wrong is shown as a sentence in the picture's place.
    """
    algorithm = ipywidgets.Dropdown(options=list(PLANS), value=name, description="algorithm")
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    size = ipywidgets.Dropdown(options=[1, 7, 1024, 1 << 20], value=1024, description="floats")
    number, play = slider("round", 1, 0, 1), ipywidgets.Play(interval=900, max=1)

    def drawn(name: str, num_ranks: int, num_elements: int, _: int) -> tuple[bytes, int, str]:
        number.max = play.max = len(PLANS[name](num_ranks).rounds)  # may lower its value
        return draw_round(name, num_ranks, num_elements, number.value)

    box = explorer([[algorithm, ranks, size], [number]], drawn)
    ipywidgets.jslink((play, "value"), (number, "value"))
    box.children[1].children = (number, play)
    return box


def draw_round(name: str, num_ranks: int, num_elements: int, number: int) -> tuple[bytes, int, str]:
    """A round's picture (PNG), its width in pixels, and what the ledger counted; or why not."""
    try:
        rounds = watch_rounds(name, num_ranks, num_elements)
        png, size = rounds.picture(number)._repr_png_()
    except Exception as error:
        return b"", 0, _sentence(error)
    return png, size["width"], str(rounds)


def explorer(rows: list[list[ipywidgets.Widget]], drawn: Callable) -> ipywidgets.VBox:
    """Rows of controls above the picture that `drawn(*their values)` gives, drawn at each change.

    `drawn` returns the picture (PNG), its width and a sentence; without a picture, why.
    """
    # The picture is an Image and not an Output: nbclient can wait for ever for a cell that draws
    # into an Output (its answer to the widget may hide the cell's reply).
    shown, sentence = ipywidgets.Image(format="png"), ipywidgets.HTML()  # a Label would not wrap
    controls = [control for row in rows for control in row]

    def redraw(_=None) -> None:
        png, width, text = drawn(*(control.value for control in controls))
        sentence.value = html.escape(text, quote=False)
        shown.value, shown.width = png, str(width)
        shown.layout.display = None if png else "none"

    for control in controls:
        control.observe(redraw, "value")
    redraw()
    return ipywidgets.VBox([*map(ipywidgets.HBox, rows), shown, sentence])


def _sentence(error: Exception) -> str:
    """What a rank said, without where; any other error with its type."""
    if isinstance(error, RankError) and "ValueError: " in error.traceback:
        return error.traceback.strip().rpartition("ValueError: ")[2]
    return f"{type(error).__name__}: {error}"


def slider(label: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    # Without continuous updates a drag launches ranks once, where it ends.
    return ipywidgets.IntSlider(value, least, most, description=label, continuous_update=False)
