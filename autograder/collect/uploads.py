"""Reading what students uploaded, files that may be anything, and choosing the notebook.

Nothing here raises for one bad file: what cannot be read becomes no cells and a sentence. What a
hand-in may cost is counted before it is parsed: bytes, and the marks that JSON is made of, which
saved pictures hold few of, however large they are.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

MAX_BYTES = 200_000_000  # of one file, saved outputs included
MAX_READ = 3 * MAX_BYTES  # of all files of one person
MAX_MARKS = 20_000_000  # brackets and commas of all files of one person: four seconds of parsing
MAX_FILES = 2_000  # of one person
MAX_CELLS = 50_000
SUFFIXES = (".ipynb", ".json", ".txt")
NO_NOTEBOOK = "is neither a folder nor a notebook"
NOTHING = "No notebook was found in this submission."
_TOO_MUCH = "was not looked at, as all files together are too large; clear their outputs"
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
    size: int = 0


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
    parts, num_bytes = [], 0
    while num_bytes <= limit and (part := stream.read(1 << 20)):
        parts.append(part)
        num_bytes += len(part)
    if num_bytes > limit:
        return None, f"is larger than {limit // 1_000_000} MB"
    return b"".join(parts), ""


def printable(name: str) -> str:
    """A file's name as a line of text: what cannot be shown becomes \\n or \\udcff."""
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return "".join(shown)


@dataclass(frozen=True)
class Cell:
    """One cell of a submission: only text and what identifies it, everything checked to be so."""

    cell_type: str
    source: str
    grade_id: str = ""
    cell_id: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """What it may be found by."""
        return {self.grade_id, self.cell_id} - {""}


@dataclass(frozen=True)
class Choice:
    """The file that is the notebook, if any is: `attempts` are those that hold released cells.

    `why` says why there are no cells; `problems`, of each file that cannot be read, why it cannot:
    `is larger than 200 MB`.
    """

    file: File | None
    data: bytes | None
    cells: list[Cell]
    why: str
    attempts: int
    problems: list[tuple[File, str]]


def likely_first(files: Iterable[File], stem: str) -> list[File]:
    """The files, the likeliest notebook first, as many as are looked at."""
    return sorted(files, key=lambda file: (*_unlike(file, stem), file.size))[:MAX_FILES]


def choose(files: Iterable[File], stem: str, known: set[str]) -> Choice:
    """Of one person's files the one with cells of `known` (the released names), the newest.

    Else the newest with any cells; STEM.ipynb before other names. Holds the bytes of two at most.
    """
    best, found, attempts, problems = (), (None, None, [], NOTHING), 0, []
    budget = _Budget()
    for file in files:
        data, why_not = budget.read(file)
        if data is None:
            problems.append((file, why_not))
            continue
        cells, why = found_cells(data)
        is_notebook = file.path.suffix == ".ipynb"
        score = len(set().union(*(cell.names for cell in cells)) & known)
        attempts += score > 0
        right = tuple(not unlike for unlike in _unlike(file, stem)[:2])
        rank = (score > 0, len(cells) > 0, file.newness, right, score, is_notebook, len(cells))
        if (cells or is_notebook) and rank > best:
            best, found = rank, (file, data, cells, why)
    return Choice(*found, attempts, problems)


class _Budget:
    """What reading and parsing one person's files may still cost."""

    def __init__(self):
        self.num_bytes, self.num_marks = MAX_READ, MAX_MARKS

    def read(self, file: File) -> Read:
        """The bytes of a file that is cheap enough to parse, or None and why not."""
        if file.path.suffix.lower() not in SUFFIXES:
            return None, file.read()[1] or NO_NOTEBOOK
        data, why_not = file.read() if self.num_bytes > 0 else (None, _TOO_MUCH)
        if data is None:
            return None, why_not
        marks = sum(map(data.count, (b"[", b"{", b",")))
        self.num_bytes -= len(data)
        if marks > self.num_marks:
            return None, _TOO_MUCH
        self.num_marks -= marks
        return data, ""


def _unlike(file: File, stem: str) -> tuple[bool, ...]:
    """Ways in which a file's name is not that of the notebook, the smallest first."""
    name, suffix = file.path.name, file.path.suffix
    wrong = name != f"{stem}.ipynb", not name.endswith(f"{stem}.ipynb"), suffix != ".ipynb"
    return *wrong, suffix.lower() not in SUFFIXES


def found_cells(data: bytes | None) -> tuple[list[Cell], str]:
    """The cells in the bytes of a notebook file; none, and a sentence why, where there is none."""
    if data is None:
        return [], NOTHING
    if not data.strip():
        return [], "The notebook file is empty."
    try:
        entries = _entries(json.loads(data))  # UTF-8, 16 or 32, whichever it is
        cells = [cell for entry in entries[:MAX_CELLS] if (cell := _cell(entry))]
        if not cells:
            raise ValueError("its cells are no cells" if entries else "it has no cells")
    except Exception as error:  # whatever the bytes make Python raise, the class goes on
        return [], f"The file is not a readable notebook ({_reason(error)})."
    return cells, ""


def whole_text(text: str) -> str:
    """Text that every file and page can hold: half characters, as in odd file names, become ?."""
    return text.encode("utf-8", "replace").decode()


def _entries(content: Any) -> Sequence[Any]:
    """The list of cells of a notebook of format 4, or of 3, whose cells stand in worksheets."""
    if not isinstance(content, dict):
        raise ValueError("not a notebook")
    sheets = content.get("worksheets")
    if "cells" not in content and isinstance(sheets, list):
        return [cell for sheet in map(_dict, sheets) for cell in sheet.get("cells") or ()]
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
        _source(entry.get("source", entry.get("input", ""))),
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
