"""Reading what students uploaded: files that may be anything, and notebooks that may be broken.

Nothing here raises for one bad file: what cannot be read becomes no cells and a sentence.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import nbformat

MAX_BYTES = 30_000_000
MAX_CELLS = 2_000
MAX_FILES = 200
SUFFIXES = (".ipynb", ".json", ".txt")
NO_NOTEBOOK = "is neither a folder nor a notebook"
Read = tuple[bytes | None, str]  # the bytes, or None and why not


@dataclass(frozen=True)
class File:
    """One file, read only when asked for. `path` is where it lies in what was handed in.

    Of one person's files, the one with the greatest `newness` is the newest.
    """

    path: PurePosixPath
    read: Callable[[], Read]
    modified: datetime | None = None
    newness: tuple = ()


@dataclass(frozen=True)
class Cell:
    """One cell of a submission: only text and what identifies it, everything checked to be so."""

    cell_type: str
    source: str
    grade_id: str = ""
    cell_id: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)


def read_file(path: Path, limit: int = MAX_BYTES) -> Read:
    """The bytes of a regular file, or None and why not. Follows no link and waits for no pipe."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None, "is a link or a special file, which is never read"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return capped(file, limit)
    except OSError as error:
        return None, f"could not be read ({error.strerror})"


def capped(stream: BinaryIO, limit: int = MAX_BYTES) -> Read:
    """All bytes of a stream, or None and why not where they are more than `limit`."""
    data = stream.read(limit + 1)
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
        entries = _entries(json.loads(data))[:MAX_CELLS]  # UTF-8, 16 or 32, whichever it is
        cells = [cell for entry in entries if (cell := _cell(entry))]
        if entries and not cells:
            raise ValueError("its cells are no cells")
    except Exception as error:  # whatever the bytes make Python raise, the class goes on
        why = _reason(error)
        return [], [f"The file is not a readable notebook ({why}). It was graded as a blank one."]
    if left_out := len(entries) - len(cells):
        what = f"{len(entries)} cells holds {left_out} that are no cells"
        return cells, [f"The notebook's list of {what}. They were left out."]
    return cells, []


@dataclass(frozen=True)
class Choice:
    """The file that is the notebook, if any is: `attempts` are those that hold released cells.

    `problems` say of each file that cannot be read why, `is larger than 30 MB`.
    """

    file: File | None
    data: bytes | None
    num_cells: int
    attempts: int
    problems: list[tuple[File, str]]


def choose(files: Iterable[File], stem: str, known: set[str]) -> Choice:
    """Of one person's files the one with cells of `known` (the released grade_ids), the newest.

    Else the newest with any cells; STEM.ipynb before other names. Holds the bytes of two at most.
    """
    best, found, attempts, problems = (), (None, None, 0), 0, []
    for file in files:
        data, why_not = file.read()
        is_notebook = file.path.suffix == ".ipynb"
        if data is None or file.path.suffix.lower() not in SUFFIXES:
            problems.append((file, why_not or NO_NOTEBOOK))
            continue
        cells, _ = found_notebook(data)
        score = len({cell.grade_id for cell in cells} & known)
        attempts += score > 0
        name = file.path.name
        right = (name == f"{stem}.ipynb", name.endswith(f"{stem}.ipynb"))
        rank = (score > 0, len(cells) > 0, file.newness, right, score, is_notebook, len(cells))
        if (cells or is_notebook) and rank > best:
            best, found = rank, (file, data, len(cells))
    return Choice(*found, attempts, problems)


def take(folder: Path, stem: str, known: set[str]) -> tuple[bytes | None, list[str]]:
    """The notebook in one submission's folder, whatever it is called, and notes on the choice."""
    try:
        names = sorted(os.listdir(folder))[:MAX_FILES] if not folder.is_symlink() else []
    except OSError:
        names = []
    names = [n for n in names if n.lower().endswith(SUFFIXES) and n != "timestamp.txt"]
    files = (File(PurePosixPath(whole_text(n)), partial(read_file, folder / n)) for n in names)
    chosen = choose(files, stem, known)
    notes = [f"The file {file.path} {why}. It was left out." for file, why in chosen.problems]
    if chosen.num_cells and str(chosen.file.path) != f"{stem}.ipynb":
        found = f"The notebook was found under the name {chosen.file.path}"
        notes.append(f"{found}; it should be {stem}.ipynb.")
    return chosen.data, notes


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
    entry = _dict(entry)
    if entry.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    metadata = _dict(entry.get("metadata"))
    settings, tags = _dict(metadata.get("nbgrader")), metadata.get("tags")
    return Cell(
        entry["cell_type"],
        _source(entry.get("source", "")),
        _name(settings.get("grade_id")),
        _name(entry.get("id")),
        settings,
        [str(tag) for tag in tags] if isinstance(tags, list) else [],
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
