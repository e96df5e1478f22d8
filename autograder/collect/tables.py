"""CSV files: those that Canvas and Moodle export are read, whatever their separator is.

What is written has no value that a spreadsheet runs.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.places import CourseError

PARTICIPANT = "Participant "
_SUBMITTED = "Last modified (submission)"
_FORMATS = (
    "%A, %d %B %Y, %I:%M %p",
    "%A, %d %B %Y, %H:%M",
    "%A, %B %d, %Y, %I:%M %p",
    "%Y-%m-%d %H:%M:%S",
    "%d/%m/%y, %H:%M",
)


@dataclass
class Table:
    """A CSV file: its columns, and its rows by column."""

    columns: list[str]
    rows: list[dict[str, Any]]
    delimiter: str = ","

    def text(self) -> str:
        """The file; what a row lacks is empty, and what has no column is left out."""
        out, form = io.StringIO(), {"delimiter": self.delimiter, "lineterminator": "\n"}
        writer = csv.DictWriter(out, self.columns, extrasaction="ignore", **form)
        writer.writeheader()
        writer.writerows(self.rows)
        return out.getvalue()


def read_table(path: Path, needed: Iterable[str], what: str) -> Table:
    """The table in a file.

    Raises:
        CourseError: it cannot be read as text, or lacks columns that a `what` needs.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    delimiter = max(",;", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, restval="")
    columns = list(reader.fieldnames or ())
    if missing := sorted({*needed} - {*columns}):
        raise CourseError(f"{path} is no {what}: it lacks the columns {', '.join(missing)}")
    return Table(columns, list(reader), delimiter)


def no_formula(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets a quote before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def no_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of which no value is a formula."""
    return {name: no_formula(value) for name, value in row.items()}


def hand_in_times(path: Path) -> dict[str, datetime]:
    """When each participant handed in, by number, from a grading worksheet of Moodle.

    Its times say no zone: they are taken for this machine's.

    Raises:
        CourseError: the file is no worksheet, or says a time in a way not known here.
    """
    table = read_table(path, ("Identifier", _SUBMITTED), "grading worksheet of Moodle")
    times = {
        row["Identifier"].removeprefix(PARTICIPANT).strip(): row[_SUBMITTED].strip()
        for row in table.rows
    }
    return {who: _moment(text, path) for who, text in times.items() if text not in ("", "-")}


def _moment(text: str, path: Path) -> datetime:
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).astimezone(UTC)
        except ValueError:
            continue
    raise CourseError(
        f"{path}: {text!r} is a time in a form that is not known here; set Moodle to English to"
        " export the worksheet"
    )
