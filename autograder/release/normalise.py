"""Notebooks as they are committed: no outputs, no counts, one kernelspec, readable cell ids.

    python -m autograder.release.normalise lectures solutions    # rewrites what is not normal

One source per notebook and nothing in it that a run leaves behind, so that a diff shows what an
author wrote. A cell's id is its nbgrader name where it has one, else a kebab-case name: the one the
author gave, or the first words of the cell in place of an editor's random letters. What a page
folds by a tag, JupyterLab folds too: it reads other words, which follow from the tags.
"""

import itertools
import re
import sys
from pathlib import Path

import nbformat
import nbformat.v4

from autograder.pages import write_page
from autograder.release.rules import KERNELSPEC

KEPT_IN_CELLS = ("jupyter", "limit_seconds", "nbgrader", "tags")
KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
FOLDS = {"hide-input": "source_hidden", "hide-output": "outputs_hidden"}  # tag: JupyterLab's word
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
    metadata = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    notebook.metadata = nbformat.from_dict(metadata)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    taken: set[str] = set()
    for cell in cells:
        _normalise(cell)
        name = _name(cell)
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        cell["id"] = next(one for one in names if one not in taken)
        taken.add(cell["id"])
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def is_readable(cell_id: str) -> bool:
    """Kebab-case words of at most 64 letters, and no random hexadecimal among them."""
    plain = KEBAB.fullmatch(cell_id) is not None and len(cell_id) <= 64
    return plain and not any(RANDOM.match(word) for word in cell_id.split("-"))


def _normalise(cell: nbformat.NotebookNode) -> None:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    cell.source = "\n".join(line.rstrip() for line in cell.source.split("\n")).strip("\n")
    kept = {key: cell.metadata.get(key) for key in KEPT_IN_CELLS}
    if not kept["nbgrader"]:  # a test cell is folded in JupyterLab alone
        tags = kept["tags"] or ()
        kept["jupyter"] = {word: True for tag, word in FOLDS.items() if tag in tags}
    cell.metadata = nbformat.from_dict({key: value for key, value in kept.items() if value})


def _name(cell: nbformat.NotebookNode) -> str:
    named = cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")
    if is_readable(named):
        return named
    words = re.findall(r"[a-z][a-z0-9]*", cell.source.lower())[:WORDS_IN_AN_ID]
    return "-".join(words)[:60].strip("-") or "empty"


def main(paths: list[str]) -> int:
    """Normalise the notebooks in these files and folders; 1 when something was not normal."""
    wrong = 0
    for place in map(Path, paths):
        for path in sorted(place.rglob("*.ipynb")) if place.is_dir() else [place]:
            if ".ipynb_checkpoints" not in path.parts and (said := _normalise_file(path)):
                print(f"{path}: {said}")
                wrong = 1
    return wrong


def _normalise_file(path: Path) -> str:
    """What was done to a file, or why nothing could be; "" of a notebook that was normal."""
    try:
        text = path.read_text(encoding="utf-8")
        if (wanted := normalised(text)) == text:
            return ""
        write_page(path, wanted.encode())
    except (OSError, ValueError) as error:
        return f"left as it is: {error}"
    return "normalised"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
