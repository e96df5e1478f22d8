"""A page's picture that changes: native selects, and what they show, drawn beforehand.

pages/explorer.js switches the states. Where no script runs, the static text of the form stands.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

PAGES = Path(__file__).parent / "pages"
FOLDER = "explorers"  # of the book, with the script and the states
HOLE = re.compile(r"\{(\d+)\}")
State = tuple[int, Sequence[str]]  # which template, and HTML for its holes


@dataclass(frozen=True)
class Explorer:
    """What can be chosen, and what is then shown.

    selects: by label, (value, words) of each option. templates: HTML with holes {0}, {1}, ...;
    states: by the selects' values.
    """

    name: str
    selects: Mapping[str, Sequence[tuple[str, str]]]
    templates: Sequence[str]
    states: Mapping[tuple[str, ...], State]

    def shown(self, *chosen: str) -> str:
        """The HTML of a state."""
        number, values = self.states[chosen]
        return HOLE.sub(lambda hole: values[int(hole[1])], self.templates[number])

    def form(self, start: Sequence[str], static: str) -> str:
        """HTML for a page in the book's first folder, which begins in a state."""
        rows = zip(self.selects.items(), start, strict=True)
        controls = "".join(_select(label, options, value) for (label, options), value in rows)
        return (
            f'<form class="explorer" data-states="{escape(self.name)}" autocomplete="off">'
            f"<fieldset hidden>{controls}</fieldset>"
            f'<div class="shown" aria-live="polite">{static}</div></form>\n'
            f'<script src="{FOLDER}/explorer.js"></script>'
        )

    def write(self, book: Path) -> Path:
        """The states and the script, into a book's folder; the states' file."""
        folder = book / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(PAGES / "explorer.js", folder)
        states = {"|".join(key): [number, *values] for key, (number, values) in self.states.items()}
        found = json.dumps({"templates": self.templates, "states": states}, ensure_ascii=False)
        path = folder / f"{self.name}.js"
        path.write_text(f"explorers.found({json.dumps(self.name)}, {found});\n")
        return path


def _select(label: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    """A native one, with its label around it."""
    rows = "".join(
        f'<option value="{escape(value)}"{" selected" * (value == chosen)}>{escape(words)}</option>'
        for value, words in options
    )
    return f"<label>{escape(label)} <select>{rows}</select></label>"
