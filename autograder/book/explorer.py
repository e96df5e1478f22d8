"""A page's picture that changes: native controls, and what they show, drawn beforehand.

pages/explorer.js switches the states. Where no script runs, the static text of the form stands.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

PAGES = Path(__file__).parent / "pages"
FOLDER = "explorers"  # of the book, with the script and the states
HOLE = re.compile(r"\{(\d+|\*)\}")
State = tuple[int, Sequence[str]]  # which template, and HTML for its holes


@dataclass(frozen=True)
class Explorer:
    """What can be chosen, and what is then shown.

    selects: by label, (value, words) of each option. templates: HTML with holes {0}, {1}, ..., or
    {*} for all; states: by the selects' values; where the last of these has none, the page does
    not offer it. sliders: labels of what is a slider and no menu, "play" where a button moves it.
    """

    name: str
    selects: Mapping[str, Sequence[tuple[str, str]]]
    templates: Sequence[str]
    states: Mapping[tuple[str, ...], State]
    sliders: Mapping[str, str] = field(default_factory=dict)

    def shown(self, *chosen: str) -> str:
        """The HTML of a state."""
        number, values = self.states[chosen]

        def filled(hole: re.Match[str]) -> str:
            return "".join(values) if hole[1] == "*" else values[int(hole[1])]

        return HOLE.sub(filled, self.templates[number])

    def form(self, start: Sequence[str], static: str, root: str = "") -> str:
        """HTML for a page that begins in a state; root: the way to the book's first folder."""
        rows = zip(self.selects.items(), start, strict=True)
        controls = "".join(
            _slider(label, options, value, self.sliders[label] == "play")
            if label in self.sliders
            else _select(label, options, value)
            for (label, options), value in rows
        )
        return (
            f'<form class="explorer" data-states="{escape(self.name)}" autocomplete="off">'
            f"<fieldset hidden>{controls}</fieldset>"
            f'<div class="shown" aria-live="polite">{static}</div></form>\n'
            f'<script src="{root}{FOLDER}/explorer.js"></script>'
        )

    def write(self, book: Path) -> Path:
        """The states and the script, into a book's folder; the states' file."""
        folder = book / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(PAGES / "explorer.js", folder)
        found = json.dumps(self.packed(), ensure_ascii=False, separators=(",", ":"))
        packed = base64.b64encode(gzip.compress(found.encode(), mtime=0)).decode()
        path = folder / f"{self.name}.js"
        path.write_text(f"explorers.found({json.dumps(self.name)}, {json.dumps(packed)});\n")
        return path

    def packed(self) -> dict[str, object]:
        """As the script takes it: under places of options, what recurs as a number of a part."""
        number: dict[str, int] = {}
        first: dict[tuple[object, ...], str] = {}
        states: dict[str, object] = {}
        recur = _in_several(values for _, values in self.states.values())
        options = [[value for value, _ in each] for each in self.selects.values()]
        for chosen, (template, values) in self.states.items():
            key = "|".join(str(each.index(c)) for each, c in zip(options, chosen, strict=True))
            like = first.setdefault((template, *values), key)
            told = (number.setdefault(v, len(number)) if v in recur else v for v in values)
            states[key] = [template, *told] if like == key else like
        return {"templates": self.templates, "parts": list(number), "states": states}


def _in_several(lists: Iterable[Iterable[str]]) -> set[str]:
    """What stands more than once in all."""
    counts = Counter(itertools.chain.from_iterable(lists))
    return {value for value, count in counts.items() if count > 1}


def _select(label: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    """A native one, with its label around it."""
    rows = "".join(
        f'<option value="{escape(value)}"{" selected" * (value == chosen)}>{escape(words)}</option>'
        for value, words in options
    )
    return f"<label>{escape(label)} <select>{rows}</select></label>"


def _slider(label: str, options: Sequence[tuple[str, str]], chosen: str, plays: bool) -> str:
    """A native one over the options' places, what it stands for beside it, and a button or none."""
    place = [value for value, _ in options].index(chosen)
    words = escape("|".join(words for _, words in options))
    return (
        f'<label>{escape(label)} <input type="range" max="{len(options) - 1}" value="{place}"'
        f' data-words="{words}"><span aria-hidden="true"></span></label>'
        + '<button type="button">play</button>'
        * plays
    )
