"""CSV files: those that Canvas and Moodle export are read, whatever their separator is.

What is written has no value that a spreadsheet runs.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dateutil import parser

from autograder.places import CourseError

PARTICIPANT = "Participant "  # before a person's number, in what Moodle exports
_SUBMITTED = "Last modified (submission)"


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


def read_table(path: Path, needed: Iterable[str] = (), what: str = "table") -> Table:
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


def no_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of which no text is one that a spreadsheet takes for a formula: those get a quote."""
    starts = ("=", "+", "-", "@", "\t", "\r")
    formulas = {k: v for k, v in row.items() if isinstance(v, str) and v.startswith(starts)}
    return {**row, **{k: f"'{v}" for k, v in formulas.items()}}


def hand_in_times(path: Path) -> dict[str, float]:
    """When each participant handed in, in seconds, by number, from a grading worksheet of Moodle.

    Its times say no zone: they are taken for this machine's.

    Raises:
        CourseError: the file is no worksheet, or not one in English.
    """
    rows = read_table(path, ("Identifier", _SUBMITTED), "grading worksheet of Moodle").rows
    said = {row["Identifier"].removeprefix(PARTICIPANT): row[_SUBMITTED].strip() for row in rows}
    try:
        return {who: _moment(text) for who, text in said.items() if text not in ("", "-")}
    except (ValueError, OverflowError) as error:
        raise CourseError(f"{path}: {error}. Set Moodle to English to export it") from None


def _moment(text: str) -> float:
    """A time such as Friday, 20 November 2026, 11:59 PM; 3/2/26 may be in February or March."""
    if not text[0].isalpha():
        raise ValueError(f"{text!r} does not begin with the day of the week")
    return parser.parse(text).timestamp()
