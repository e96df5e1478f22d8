"""A lecture's explorer as a page's: states of its picture, drawn when the book is made.

An executed lecture has a recipe beside its explorer's picture (byhand.tools.explorer): the function
of byhand that draws, and values of the controls. Only the course's own lectures are read here, and
no functions but byhand's are called.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from html import escape
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat

import byhand
from autograder.book.explorer import FOLDER, Explorer, State
from autograder.book.svg import pieces
from byhand.tools.explorer import RECIPE, outcome

Recipe = Mapping[str, Any]
DRAWS = Path(byhand.__file__).parent, Path(__file__).parent  # what decides how a state looks


def forms(names: Sequence[str], executed: Path, build: Path) -> dict[str, str]:
    """For each of these lectures that has an explorer, as it was executed, the form for its page.

    Its states are in build/explorers, and are drawn only if the recipe or the library changed.
    """
    recipes = {name: recipe_of(executed / f"{name}.ipynb") for name in names}
    found = {name: recipe for name, recipe in recipes.items() if recipe}
    stamp = _stamp()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(form, name, found[name], build, stamp) for name in found]
        return dict(zip(found, (task.result() for task in tasks), strict=True))


def recipe_of(notebook: Path) -> Recipe | None:
    """That of the lecture's explorer, if it has one."""
    cells = nbformat.read(notebook, as_version=4).cells
    outputs = itertools.chain.from_iterable(cell.get("outputs", []) for cell in cells)
    return next((found for each in outputs if (found := each.get("data", {}).get(RECIPE))), None)


def form(name: str, recipe: Recipe, build: Path, stamp: str) -> str:
    """That of a lecture's page; its states are in build/explorers when this returns."""
    known = build / FOLDER / f"{name}.json"
    key = hashlib.sha256(f"{stamp}{json.dumps(recipe, sort_keys=True)}".encode()).hexdigest()
    if known.exists() and known.with_suffix(".js").exists():
        before = json.loads(known.read_text())
        if before["key"] == key:
            return before["form"]
    explorer = explorer_of(name, recipe)
    start = tuple(str(each["start"]) for each in _moving(recipe))
    static = explorer.shown(*start) + multiples(explorer, start)
    text = explorer.form(start, static, "../")
    explorer.write(build)
    known.write_text(json.dumps({"key": key, "form": text}))
    return text


def explorer_of(name: str, recipe: Recipe) -> Explorer:
    """Every state, drawn. A control of one value keeps it, and is not shown."""
    controls, moving = recipe["controls"], _moving(recipe)
    drawn = partial(_function(recipe["draw"]), **recipe["fixed"])
    most = _function(recipe["most"]) if recipe["most"] else None
    states: dict[tuple[str, ...], State] = {}
    for places in itertools.product(*(range(len(control["values"])) for control in controls)):
        pairs = list(zip(controls, places, strict=True))
        values = [control["values"][place] for control, place in pairs]
        if most is None or values[-1] <= most(*values[:-1]):
            states[tuple(str(place) for control, place in pairs if control in moving)] = state(
                drawn, values
            )
    selects = {
        each["label"]: [(str(place), words) for place, words in enumerate(each["words"])]
        for each in moving
    }
    sliders = {each["label"]: each["kind"] for each in moving if each["kind"] != "select"}
    return Explorer(name, selects, ["{*}"], states, sliders)


def state(drawn: Callable, values: Sequence[Any]) -> State:
    """A picture and a sentence, or the sentence alone."""
    figure, text = outcome(drawn, values)
    sentence = f"<p>{escape(text, quote=False)}</p>" if text else ""
    return 0, [*(pieces(figure) if figure else []), sentence]


def multiples(found: Explorer, start: tuple[str, ...]) -> str:
    """A state beside the start for each control, small: what a page without script has."""
    figures = ""
    for place, (label, options) in enumerate(found.selects.items()):
        keys = {words: (*start[:place], value, *start[place + 1 :]) for value, words in options}
        others = {words: key for words, key in keys.items() if key in found.states}
        for words, key in [each for each in others.items() if each[1] != start][:1]:
            told = f"<figcaption>{escape(f'{label}: {words}')}</figcaption>"
            figures += f"<figure>{told}{found.shown(*key)}</figure>"
    return f'<noscript><div class="multiples">{figures}</div></noscript>'


def _moving(recipe: Recipe) -> list[Mapping[str, Any]]:
    return [each for each in recipe["controls"] if len(each["values"]) > 1]


def _function(name: str) -> Callable:
    """A function of byhand, by its module and name."""
    module, _, function = name.partition(":")
    if module.partition(".")[0] != "byhand":
        raise ValueError(f"an explorer is drawn by functions of byhand, and not by {name}")
    return getattr(importlib.import_module(module), function)


def _stamp() -> str:
    """Of the sources that draw."""
    files = (path for folder in DRAWS for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
