"""What a student uploaded, which may be anything: its files, and the notebook among them.

Nothing here raises for one bad file: what cannot be read becomes no cells and a sentence. A file
that is made to be slow to parse takes six seconds at most, and 1.3 GB.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

MAX_BYTES = 50_000_000  # of one file; a notebook without outputs has some 50,000
MAX_CELLS = 50_000


@dataclass(frozen=True)
class File:
    """One file, read only when asked for. `path` is where it lies in what was handed in.

    Of one person's files, the one with the greatest `newness` is the newest: of a file on the disk
    or in a zip, the second in which it was changed.
    """

    path: PurePosixPath
    open: Callable[[], IO[bytes]]
    newness: float = 0

    def read(self, limit: int = MAX_BYTES) -> tuple[bytes | None, str]:
        """Its bytes, or None and why not."""
        try:
            with self.open() as stream:
                data = stream.read(limit + 1)
        except Exception as error:  # whatever the bytes make Python raise, the class goes on
            return None, f"it cannot be read ({_reason(error)})"
        large = f"it is larger than {limit // 10**6} MB"
        return (data, "") if len(data) <= limit else (None, large)


def notebook_of(files: Iterable[File], stem: str) -> File | None:
    """Of one person's files the notebook: named after the assignment before others, the newest.

    Browsers save STEM (1).ipynb and STEM.ipynb.txt, Canvas STEM-1.ipynb: all are named after it.
    So is a print, STEM.ipynb - Colab.pdf: what ends otherwise and holds no cells comes last.
    """
    named = [file for file in files if ".ipynb" in file.path.name.lower()]

    def rank(file: File) -> tuple[bool, bool, float, bool, str]:
        name = file.path.name
        is_one = name.lower().endswith(".ipynb") or bool(found_cells(file.read()[0])[0])
        return is_one, stem in name, file.newness, name == f"{stem}.ipynb", name

    return max(named, key=rank, default=None)


def read_file(path: Path, limit: int = MAX_BYTES) -> tuple[bytes | None, str]:
    """The bytes of a regular file, or None and why not. Follows no link and waits for no pipe."""
    return File(PurePosixPath(), partial(regular, path)).read(limit)


def regular(path: Path) -> IO[bytes]:
    """A file opened for reading; OSError if it is a link, a pipe or anything else."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError("it is a link or a special file")
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def printable(text: str) -> str:
    """A file's name as a line of text: what cannot be shown becomes \\n or \\udcff."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True)
class Cell:
    """One cell of a submission: only text and what identifies it, everything checked to be so.

    `names`, its grade_id and its id, are what it may be found by.
    """

    cell_type: str
    source: str
    names: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)


def found_cells(data: bytes | None) -> tuple[list[Cell], str]:
    """The cells in the bytes of a notebook file; none, and a sentence why, where there is none."""
    if data is None:
        return [], "No notebook was found in this submission."
    if not data.strip():
        return [], "The notebook file is empty."
    try:
        content = json.loads(data)  # UTF-8, 16 or 32, whichever it is
        entries = _list(_dict(content).get("cells"))[:MAX_CELLS]
        cells = [cell for entry in entries if (cell := _cell(_dict(entry)))]
    except Exception as error:  # whatever the bytes make Python raise, the class goes on
        return [], f"The file is not a readable notebook ({_reason(error)})."
    return cells, "" if cells else "The file is not a notebook: it holds no cells."


def _cell(entry: dict[str, Any]) -> Cell | None:
    if entry.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    metadata = _dict(entry.get("metadata"))
    settings = _dict(metadata.get("nbgrader"))
    names = [settings.get("grade_id"), entry.get("id")]
    return Cell(
        entry["cell_type"],
        _source(entry.get("source")),
        [name for name in names if isinstance(name, str) and 0 < len(name) <= 200],
        settings,
        [str(tag) for tag in _list(metadata.get("tags"))],
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _source(source: Any) -> str:
    parts = source if isinstance(source, list) else [source]
    text = "".join(part for part in parts if isinstance(part, str))
    whole = text.encode("utf-8", "replace").decode()  # half characters become ?
    return whole.replace("\r\n", "\n").replace("\0", "")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    said = getattr(error, "strerror", "") or str(error)  # that of the system names no path of ours
    return printable(said[:200]) or type(error).__name__
