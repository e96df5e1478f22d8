"""Explorers for a notebook: each change of a control runs real ranks and redraws their picture."""

import ipywidgets
from IPython.display import display
from matplotlib.figure import Figure

from byhand.demonstrations import MOST_RANKS, NAMES, ROOTED, demonstrate, picture


def collective_explorer(name: str = "broadcast", world_size: int = 4) -> ipywidgets.Widget:
    """Choose the collective, the number of ranks and the root; see who holds what.

    Each choice launches that many ranks. What goes wrong is shown in the picture's place.
    """
    choices = {
        "name": ipywidgets.Dropdown(options=NAMES, value=name, description="collective"),
        "world_size": _slider("ranks", world_size, 1, MOST_RANKS),
        "root": _slider("root", 0, 0, world_size - 1),
    }
    place = ipywidgets.Output(layout={"min_height": "240px"})

    def follow_ranks(change) -> None:
        choices["root"].max = change["new"] - 1

    def draw(_=None) -> None:
        choices["root"].disabled = choices["name"].value not in ROOTED
        with place:
            place.clear_output(wait=True)
            drawn = draw_collective(**{key: box.value for key, box in choices.items()})
            display(drawn) if isinstance(drawn, Figure) else print(drawn)

    choices["world_size"].observe(follow_ranks, "value")
    for box in choices.values():
        box.observe(draw, "value")
    draw()
    return ipywidgets.VBox([ipywidgets.HBox(list(choices.values())), place])


def draw_collective(name: str, world_size: int, root: int) -> Figure | str:
    """The picture of one demonstration, or the sentence that says why there is none."""
    try:
        return picture(demonstrate(name, world_size, root))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _slider(label: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    # Without continuous updates a drag launches ranks once, where it ends.
    return ipywidgets.IntSlider(value, least, most, description=label, continuous_update=False)
