"""An explorer for a notebook: controls above a picture that is drawn anew at each change."""

import base64
import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ipywidgets

from byhand.runtime import RankError


class Explorer(ipywidgets.VBox):
    """Controls, a picture, a sentence. A page without a kernel shows the picture as it stands."""

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        data, shown = super()._repr_mimebundle_(**kwargs), self.children[-2]
        if not shown.value:
            return data, {}
        data["image/png"] = base64.b64encode(shown.value).decode()
        return data, {"image/png": {"width": int(shown.width)}}


def explorer(rows: list[list[ipywidgets.Widget]], drawn: Callable) -> Explorer:
    """Rows of controls above what `drawn(*their values)` gives, drawn anew at each change.

    `drawn` returns a figure and a sentence. What it raises is told in the figure's place.
    """
    # The picture is an Image and not an Output: nbclient can wait for ever for a cell that draws
    # into an Output (its answer to the widget may hide the cell's reply).
    shown, sentence = ipywidgets.Image(format="png"), ipywidgets.HTML()  # a Label would not wrap
    controls = [control for row in rows for control in row]

    def redraw(_: object = None) -> None:
        try:
            figure, text = drawn(*(control.value for control in controls))
            png, width = figure.png()
        except Exception as error:
            png, width, text = b"", 0, why(error)
        sentence.value = html.escape(text, quote=False)
        shown.value, shown.width = png, str(width)
        shown.layout.display = None if png else "none"

    for control in controls:
        control.observe(redraw, "value")
    redraw()
    return Explorer([*map(ipywidgets.HBox, rows), shown, sentence])


def why(error: Exception) -> str:
    """What was refused, here or on a rank, without where; any other error with its type."""
    if isinstance(error, RankError) and "ValueError: " in error.traceback:
        return error.traceback.strip().rpartition("ValueError: ")[2]
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


# Without continuous updates a drag launches ranks once, where it ends.


def slider(label: str, value: float, least: float, most: float) -> ipywidgets.Widget:
    """Whole numbers from least to most; tenths where the value is a float."""
    look = {"min": least, "max": most, "description": label, "continuous_update": False}
    if isinstance(value, float):
        return ipywidgets.FloatSlider(value, step=0.1, **look)
    return ipywidgets.IntSlider(value, **look)


def steps(label: str, options: Sequence, value: object) -> ipywidgets.SelectionSlider:
    """A slider over a few values."""
    look = {"description": label, "continuous_update": False}
    return ipywidgets.SelectionSlider(options=options, value=value, **look)


def menu(label: str, options: Iterable, value: object) -> ipywidgets.Dropdown:
    """One of the options, by name."""
    return ipywidgets.Dropdown(options=list(options), value=value, description=label)
