"""CSV files: those that Canvas and Moodle export are read, whatever their separator is.

What is written has no value that a spreadsheet runs.
"""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

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


def read_csv(path: Path) -> tuple[list[list[str]], str]:
    """The rows of a file, all of one length, and its separator.

    Raises:
        CourseError: it cannot be read as text.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    first = text.partition("\n")[0]
    delimiter = max(",;", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    wide = max(map(len, rows), default=0)
    return [row + [""] * (wide - len(row)) for row in rows], delimiter


def no_formula(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets a quote before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def hand_in_times(path: Path) -> dict[str, datetime]:
    """When each participant handed in, by number, from a grading worksheet of Moodle.

    Its times say no zone: they are taken for this machine's.

    Raises:
        CourseError: the file is no worksheet, or says a time in a way not known here.
    """
    [header, *rows] = read_csv(path)[0] or [[]]
    if not {"Identifier", _SUBMITTED} <= set(header):
        raise CourseError(
            f"{path} is no grading worksheet of Moodle: it lacks the columns Identifier and"
            f" {_SUBMITTED}"
        )
    number, moment = header.index("Identifier"), header.index(_SUBMITTED)
    times = {row[number].removeprefix(PARTICIPANT).strip(): row[moment].strip() for row in rows}
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
