"""From the bytes of a notebook file to cells that are text. Pure: bytes in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_CELLS = 50_000
NOTHING = "No notebook was found in this submission."


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
