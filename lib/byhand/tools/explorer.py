"""An explorer for a notebook: controls above a picture that is drawn anew at each change.

A page without a kernel gets a recipe beside the picture: how to draw some of the states beforehand.
"""

import base64
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import ipywidgets

from byhand.figures.alt import as_image
from byhand.figures.style import CourseFigure
from byhand.runtime import RankError

RECIPE = "application/vnd.byhand.explorer+json"
Drawn = tuple[CourseFigure | None, str]  # a picture and a sentence
Rows = Sequence[Sequence[ipywidgets.Widget]]


class Explorer(ipywidgets.VBox):
    """Controls, a picture, a sentence. A page without a kernel shows the picture as it stands."""

    recipe: dict[str, Any] | None = None
    figure: CourseFigure | None = None

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        data = super()._repr_mimebundle_(**kwargs)
        if self.figure is None:
            return data, {}
        png, width = self.figure.png()
        data["image/png"] = base64.b64encode(png).decode()
        if self.recipe:
            data[RECIPE] = self.recipe
        return data, {"image/png": {"width": width}}


def explorer(
    rows: Rows,
    drawn: Callable,
    few: Mapping[str, Sequence] | None = None,
    most: Callable | None = None,
) -> Explorer:
    """Rows of controls above what `drawn(*their values)` gives, drawn anew at each change.

    `drawn` returns a figure and a sentence. What it raises is told in the figure's place.
    few: which values a control has on a page without a kernel, by label, beside that with which it
    begins; None: all of every control. most: the last control's greatest value, by the others'.
    """
    # No Output: nbclient can wait for ever for a cell that draws into one (its answer to the widget
    # may hide the cell's reply). No Image: it has no alternative text. No Label: it does not wrap.
    shown, sentence = ipywidgets.HTML(), ipywidgets.HTML()
    box = Explorer([*map(ipywidgets.HBox, rows), shown, sentence])
    controls = [each for row in rows for each in row if not isinstance(each, ipywidgets.Play)]
    *others, last = controls

    def redraw(_: object = None) -> None:
        """Show what the controls say now."""
        if most:
            last.max = most(*(control.value for control in others))  # which may lower its value
            last.disabled = last.max == last.min
        box.figure, text = outcome(drawn, [control.value for control in controls])
        sentence.value = html.escape(text, quote=False)
        shown.value = as_image(box.figure.svg()) if box.figure else ""

    for control in controls:
        control.observe(redraw, "value")
    redraw()
    box.recipe = _recipe(controls, drawn, few or {}, most)
    if box.recipe and any(isinstance(each, ipywidgets.Play) for row in rows for each in row):
        box.recipe["controls"][-1]["kind"] = "play"
    return box


def outcome(drawn: Callable, values: Iterable) -> Drawn:
    """What is drawn of these values; or None, and why they are refused."""
    try:
        return drawn(*values)
    except Exception as error:
        return None, why(error)


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


# For a page without a kernel


def _recipe(
    controls: Sequence[ipywidgets.Widget], drawn: Callable, few: Mapping, most: Callable | None
) -> dict[str, Any] | None:
    """How to draw the states again, as JSON; None of a function that no other process finds."""
    call = drawn if isinstance(drawn, partial) else partial(drawn)
    names = [_name(call.func), most and _name(most)]
    if any("<" in name for name in filter(None, names)):
        return None
    told = [_told(control, few.get(control.description)) for control in controls]
    return {"draw": names[0], "fixed": call.keywords, "most": names[1], "controls": told}


def _name(function: Callable) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _told(control: ipywidgets.Widget, few: Sequence | None) -> dict[str, Any]:
    """A control's label, kind, values with their words, and which of these it begins with."""
    if hasattr(control, "options"):
        pairs = zip(control._options_values, control._options_labels, strict=True)
        options = {value: words for value, words in pairs}
    else:
        values = range(control.min, control.max + 1) if few is None else few
        options = {value: f"{value:.3g}" for value in sorted({*values, control.value})}
    kept = [value for value in options if few is None or value in few or value == control.value]
    return {
        "label": control.description,
        "kind": "select" if isinstance(control, ipywidgets.Dropdown) else "range",
        "values": kept,
        "words": [options[value] for value in kept],
        "start": kept.index(control.value),
    }
