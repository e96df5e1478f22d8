"""Reading what students uploaded: files that may be anything, and notebooks that may be broken.

Nothing here raises for one bad file: what cannot be read becomes no cells and a sentence.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

MAX_BYTES = 30_000_000
MAX_CELLS = 2_000
SUFFIXES = (".ipynb", ".json", ".txt")


@dataclass(frozen=True)
class Cell:
    """One cell of a submission: only text and what identifies it, everything checked to be so."""

    cell_type: str
    source: str
    grade_id: str = ""
    cell_id: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)


def read_file(path: Path, limit: int = MAX_BYTES) -> tuple[bytes | None, str]:
    """The bytes of a regular file, or None and why not. Follows no link and waits for no pipe."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None, "is a link or a special file, which is never read"
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        return None, f"could not be read ({error.strerror})"
    if len(data) > limit:
        return None, f"is larger than {limit // 1_000_000} MB"
    return data, ""


def whole_text(text: str) -> str:
    """Text that every file and page can hold: half characters, as in odd file names, become ?."""
    return text.encode("utf-8", "replace").decode()


def found_notebook(data: bytes | None) -> tuple[list[Cell], list[str]]:
    """The cells in the bytes of a notebook file; none, and a sentence, where there is none."""
    if data is None:
        return [], ["No notebook was found in this submission. It was graded as a blank one."]
    if not data.strip():
        return [], ["The notebook file is empty. It was graded as a blank one."]
    try:
        content = json.loads(data)  # UTF-8, 16 or 32, whichever it is
        entries = _entries(content)[:MAX_CELLS]
        cells = [cell for entry in entries if (cell := _cell(entry))]
        if entries and not cells:
            raise ValueError("its cells are no cells")
    except Exception as error:  # whatever the bytes make Python raise, the class goes on
        return [], [f"The file is not a readable notebook ({_reason(error)}). It was graded as a"
                    " blank one."]  # fmt: skip
    if left_out := len(entries) - len(cells):
        return cells, [f"The notebook's list of {len(entries)} cells holds {left_out} that are no"
                       " cells. They were left out."]  # fmt: skip
    return cells, []


def take(folder: Path, stem: str, known: set[str]) -> tuple[bytes | None, list[str]]:
    """The notebook in one submission's folder, whatever it is called, and notes on the choice.

    STEM.ipynb is taken if it can be read. Otherwise the file whose cells carry the most names in
    `known` (the released grade_ids), else the .ipynb with the most cells. Holds two files' bytes
    at most, however many there are.
    """
    notes, best = [], None
    for path in _candidates(folder, stem):
        data, why_not = read_file(path)
        if data is None:
            notes.append(f"The file {whole_text(path.name)} {why_not}. It was left out.")
            continue
        cells, _ = found_notebook(data)
        if cells and path.name == f"{stem}.ipynb":
            return data, notes
        score = len({cell.grade_id for cell in cells} & known)
        rank = (score, path.suffix == ".ipynb", len(cells))
        if (score or path.suffix == ".ipynb") and (best is None or rank > best[0]):
            best = rank, path.name, data
    if best is None:
        return None, notes
    rank, name, data = best
    if rank[-1]:  # else nothing can be read, and these bytes explain why
        notes.append(f"The notebook was found under the name {whole_text(name)}; it should be"
                     f" {stem}.ipynb.")  # fmt: skip
    return data, notes


def _candidates(folder: Path, stem: str) -> list[Path]:
    """Files that may hold the notebook, the one with the right name first."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        names = sorted(os.listdir(folder))[:200]
    except OSError:
        return []
    paths = [folder / name for name in names if name.lower().endswith(SUFFIXES)]
    paths = [path for path in paths if path.name != "timestamp.txt"]
    return sorted(paths, key=lambda path: path.name != f"{stem}.ipynb")


def _entries(content: Any) -> list[Any]:
    """The list of cells of a notebook of any format."""
    if not isinstance(content, dict):
        raise ValueError("not a notebook")
    if "cells" not in content and "worksheets" in content:
        content = json.loads(nbformat.writes(nbformat.reads(json.dumps(content), as_version=4)))
    if not isinstance(content.get("cells"), list):
        raise ValueError("it has no list of cells")
    return content["cells"]


def _cell(entry: Any) -> Cell | None:
    if not isinstance(entry, dict) or entry.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    metadata = entry.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    settings = metadata.get("nbgrader")
    settings = settings if isinstance(settings, dict) else {}
    tags = metadata.get("tags")
    return Cell(
        entry["cell_type"],
        _source(entry.get("source", "")),
        _name(settings.get("grade_id")),
        _name(entry.get("id")),
        settings,
        [str(tag) for tag in tags] if isinstance(tags, list) else [],
    )


def _source(source: Any) -> str:
    parts = source if isinstance(source, list) else [source]
    text = "".join(part for part in parts if isinstance(part, str))
    return whole_text(text).replace("\r\n", "\n").replace("\0", "")


def _name(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 else ""


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    return whole_text(str(error)[:200]) or type(error).__name__
