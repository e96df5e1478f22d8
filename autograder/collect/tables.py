"""CSV files: those that Canvas and Moodle export are read with commas or semicolons."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dateutil import parser

from autograder.places import CourseError

_SUBMITTED = "Last modified (submission)"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The text of a file with the columns of the first row."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [*rows[0]], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def read_rows(path: Path, what: str, *kinds: set[str]) -> list[dict[str, str]]:
    """The rows of a file that has the columns of one of these kinds.

    Raises:
        CourseError: it cannot be read as text, or has not, or no row.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    delimiter = max(",;", key=text.partition("\n")[0].count)
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter, restval=""))
    if not any(kind <= {*row} for row in rows[:1] for kind in kinds):
        needed = ", or ".join(" and ".join(sorted(kind)) for kind in kinds)
        raise CourseError(f"{path} is no {what}: it lacks {needed}")
    return rows


def number_in(row: Mapping[str, str]) -> str:
    """What Canvas or Moodle, in what it exported, knows the person in a row by."""
    return (row.get("ID") or row.get("Identifier", "")).removeprefix("Participant ").strip()


def hand_in_times(path: Path) -> dict[str, float]:
    """When each participant of Moodle handed in, in seconds, by number.

    Its times say no zone: they are taken for this machine's.

    Raises:
        CourseError: the file is no worksheet, or not one in English.
    """
    rows = read_rows(path, "grading worksheet of Moodle", {"Identifier", _SUBMITTED})
    said = {number_in(row): row[_SUBMITTED].strip() for row in rows}
    try:
        return {who: _moment(text) for who, text in said.items() if text not in ("", "-")}
    except ValueError as error:
        raise CourseError(f"{path}: {error}. Set Moodle to English to export it") from None


def _moment(text: str) -> float:
    """A time such as Friday, 20 November 2026, 11:59 PM; 3/2/26 may be in February or March."""
    if not text[0].isalpha():
        raise ValueError(f"{text!r} does not begin with the day of the week")
    return parser.parse(text).timestamp()
