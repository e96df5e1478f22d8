"""Notebooks as they are committed: no outputs, no counts, one kernelspec, readable cell ids.

    python -m autograder.release.normalise lectures solutions          # rewrite what is not normal
    python -m autograder.release.normalise --check lectures solutions  # only say which are not

One source per notebook and nothing in it that a run leaves behind, so that a diff shows what an
author wrote. A cell's id is its nbgrader name where it has one, else a kebab-case name: the one the
author gave, or the first words of the cell in place of an editor's random letters.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import nbformat.v4

from autograder.release.rules import KERNELSPEC

KEPT_IN_CELLS = ("jupyter", "limit_seconds", "limits", "nbgrader", "tags")
KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RANDOM = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{8}")
WORDS_IN_AN_ID = 4


def normalised(text: str) -> str:
    """The text of a notebook as it should be committed.

    Raises:
        ValueError: the text is no notebook.
    """
    try:
        notebook = nbformat.v4.reads_json(text)  # unlike nbformat.reads, renames no cell at random
        cells = notebook.cells
    except (ValueError, AttributeError) as error:
        raise ValueError(f"not a notebook of version 4: {error}") from error
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    taken: set[str] = set()
    for cell in cells:
        _normalise(cell)
        cell["id"] = _unique(_name(cell), taken)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def is_readable(cell_id: str) -> bool:
    """Kebab-case words of at most 64 letters, and no random hexadecimal among them."""
    plain = KEBAB.fullmatch(cell_id) is not None and len(cell_id) <= 64
    return plain and not any(RANDOM.match(word) for word in cell_id.split("-"))


def _normalise(cell) -> None:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    cell.source = "\n".join(line.rstrip() for line in cell.source.strip("\n").split("\n"))
    cell.metadata = nbformat.from_dict(
        {key: cell.metadata[key] for key in KEPT_IN_CELLS if cell.metadata.get(key)}
    )


def _name(cell) -> str:
    named = cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")
    if is_readable(named):
        return named
    words = re.findall(r"[a-z][a-z0-9]*", cell.source.lower())[:WORDS_IN_AN_ID]
    return "-".join(words)[:60].strip("-") or "empty"


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    taken.add(candidate)
    return candidate


def _notebooks(paths: list[str]) -> list[Path]:
    found = []
    for path in map(Path, paths):
        found += sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
    return [path for path in found if ".ipynb_checkpoints" not in path.parts]


def main(arguments: list[str]) -> int:
    """Normalise the notebooks named; 1 when something was (or with --check: is) not normal."""
    check_only = "--check" in arguments
    wrong = []
    for path in _notebooks([word for word in arguments if word != "--check"]):
        text = path.read_text(encoding="utf-8")
        if (wanted := normalised(text)) != text:
            wrong.append(path)
            if not check_only:
                path.write_text(wanted, encoding="utf-8")
    for path in wrong:
        print(f"{path}: {'not normal' if check_only else 'normalised'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
