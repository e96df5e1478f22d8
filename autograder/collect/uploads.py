"""What a student uploaded, which may be anything: its files, and the notebook among them.

Nothing here raises for one bad file: what cannot be read becomes no cells and a sentence. A file
that is made to be slow to parse takes six seconds at most, and 1.3 GB.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

MAX_BYTES = 50_000_000  # of one file; a notebook without outputs has some 50,000
MAX_CELLS = 50_000
NOTHING = "No notebook was found in this submission."
Read = tuple[bytes | None, str]  # the bytes, or None and why not


@dataclass(frozen=True)
class File:
    """One file, read only when asked for. `path` is where it lies in what was handed in.

    Of one person's files, the one with the greatest `newness` is the newest: of a file on the disk,
    the second in which it was changed.
    """

    path: PurePosixPath
    read: Callable[[], Read]
    newness: float = 0


def notebook_of(files: Iterable[File], stem: str) -> File | None:
    """Of one person's files the notebook: named after the assignment before others, the newest.

    Browsers save STEM (1).ipynb and STEM.ipynb.txt, Canvas STEM-1.ipynb: all are named after it.
    """
    named = [file for file in files if ".ipynb" in file.path.name.lower()]

    def rank(file: File) -> tuple[bool, float, bool, str]:
        name = file.path.name
        return stem in name, file.newness, name == f"{stem}.ipynb", name

    return max(named, key=rank, default=None)


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
    return (data, "") if len(data) <= limit else (None, f"is larger than {limit // 1_000_000} MB")


def printable(text: str) -> str:
    """A file's name as a line of text: what cannot be shown becomes \\n or \\udcff."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


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


def found_cells(data: bytes | None) -> tuple[list[Cell], str]:
    """The cells in the bytes of a notebook file; none, and a sentence why, where there is none."""
    if data is None:
        return [], NOTHING
    if not data.strip():
        return [], "The notebook file is empty."
    try:
        content = json.loads(data)  # UTF-8, 16 or 32, whichever it is
        if not isinstance(content, dict):
            raise ValueError("not a notebook")
        entries = content.get("cells")
        if not isinstance(entries, list):
            raise ValueError("it has no list of cells")
        cells = [cell for entry in entries[:MAX_CELLS] if (cell := _cell(_dict(entry)))]
        if not cells:
            raise ValueError("its cells are no cells" if entries else "it has no cells")
    except Exception as error:  # whatever the bytes make Python raise, the class goes on
        return [], f"The file is not a readable notebook ({_reason(error)})."
    return cells, ""


def _cell(entry: dict[str, Any]) -> Cell | None:
    if entry.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    metadata = _dict(entry.get("metadata"))
    settings, tags = _dict(metadata.get("nbgrader")), metadata.get("tags")
    return Cell(
        entry["cell_type"],
        _source(entry.get("source")),
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
    whole = text.encode("utf-8", "replace").decode()  # half characters become ?
    return whole.replace("\r\n", "\n").replace("\0", "")


def _name(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 else ""


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    return printable(str(error)[:200]) or type(error).__name__
