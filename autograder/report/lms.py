"""Grades in the form that Canvas and Moodle read.

Canvas (lib/gradebook_importer.rb): the columns Student, ID, SIS Login ID, Section, then one for
each assignment, called "TITLE (ID)" where Canvas knows it; a second row with the points possible.
Moodle's grading worksheet (mod/assign/feedback/offline): one file for each assignment; a person is
"Participant NUMBER", the columns Identifier, Grade and Last modified (grade) must be there.

The safest way is to fill in the file that the LMS itself exported, which knows every id: `fill`.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.collect.names import CANVAS, MOODLE, plain_name
from autograder.collect.roster import Roster
from autograder.collect.tables import PARTICIPANT, read_csv
from autograder.places import CourseError

CANVAS_COLUMNS = ["Student", "ID", "SIS Login ID", "Section"]
MOODLE_COLUMNS = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
                  "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
                  "Feedback comments"]  # fmt: skip
POINTS_ROW = "    Points Possible"
_WITH_ID = re.compile(r"(?P<title>.*?) \(\d+\)")


@dataclass(frozen=True)
class Grade:
    """One submission: its score (None while a person still has to mark it) and its tasks."""

    student: str
    assignment: str
    title: str
    score: float | None
    max_score: float
    tasks: list[tuple[str, str]] = field(default_factory=list)

    def out_of(self, maximum: float) -> str:
        """The score on a scale that ends at `maximum`, as text; empty while it is not known."""
        if self.score is None:
            return ""
        return f"{round(self.score * maximum / self.max_score, 2):g}" if self.max_score else "0"


@dataclass
class Sheet:
    """A CSV file to be, and sentences about what is not in it."""

    rows: list[list[str]]
    left: list[str] = field(default_factory=list)
    delimiter: str = ","

    def text(self) -> str:
        """The file."""
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, lineterminator="\n").writerows(self.rows)
        return out.getvalue()


def canvas(grades: list[Grade], roster: Roster) -> Sheet:
    """A gradebook file of our own: Canvas asks where a column or person is new to it."""
    names = sorted({grade.assignment for grade in grades})
    best = {grade.assignment: grade.max_score for grade in grades}
    by_student = _by_student(grades)
    rows = [CANVAS_COLUMNS + names, [POINTS_ROW, "", "", "", *(f"{best[n]:g}" for n in names)]]
    for student, mine in sorted(by_student.items()):
        number = roster.number(student, CANVAS)
        scores = [mine[n].out_of(best[n]) if n in mine else "" for n in names]
        rows.append([roster.name(student), number, "" if number else student, "", *scores])
    return Sheet(rows, _waiting(grades))


def fill_canvas(path: Path, grades: list[Grade], roster: Roster, column: str = "") -> Sheet:
    """A gradebook that Canvas exported, with our scores in its columns; nothing else changes.

    Raises:
        CourseError: it is no Canvas gradebook, or has no column for an assignment.
    """
    sheet = _read(path)
    header = sheet.rows[0] if sheet.rows else []
    if header[1:2] != ["ID"] or "Section" not in header:
        raise CourseError(f"{path} does not begin as a gradebook that Canvas exports:"
                          f" {', '.join(CANVAS_COLUMNS)}")  # fmt: skip
    places = {g.assignment: _column(header, g, column, path) for g in grades}
    maxima = next((row for row in sheet.rows[1:4] if "Points Possible" in row[0]), [])
    by_student, found = _by_student(grades), set()
    logins = [i for i, name in enumerate(header) if name in ("SIS Login ID", "SIS User ID")]
    for row in sheet.rows[1:]:
        student = _person(by_student, roster, CANVAS, row[1], [row[0], *(row[i] for i in logins)])
        for name, grade in by_student.get(student, {}).items():
            row[places[name]] = grade.out_of(_maximum(maxima, places[name], grade, sheet))
            found.add(student)
    sheet.left += _waiting(grades) + _missing(by_student, found, path)
    return sheet


def moodle(grades: list[Grade], roster: Roster) -> Sheet:
    """A worksheet of our own for one assignment: only people whose number is known."""
    rows, sheet = [MOODLE_COLUMNS], Sheet([], _waiting(grades))
    for grade in grades:
        number = roster.number(grade.student, MOODLE, grade.assignment)
        if number:
            rows.append([f"{PARTICIPANT}{number}", roster.name(grade.student), "", "",
                         grade.out_of(grade.max_score), f"{grade.max_score:g}", "Yes", "-", "-",
                         _comment(grade)])  # fmt: skip
        else:
            sheet.left.append(f"{grade.student}: students.csv has no participant number")
    sheet.rows = rows
    return sheet


def fill_moodle(path: Path, grades: list[Grade], roster: Roster) -> Sheet:
    """A worksheet that Moodle exported, with our grades and a comment for each person.

    Raises:
        CourseError: it is no grading worksheet.
    """
    sheet = _read(path)
    header = sheet.rows[0] if sheet.rows else []
    if not {"Identifier", "Grade", "Last modified (grade)"} <= set(header):
        raise CourseError(f"{path} is no grading worksheet of Moodle: it lacks the columns"
                          " Identifier, Grade and Last modified (grade)")  # fmt: skip
    at = {name: header.index(name) for name in header}
    by_student, found = _by_student(grades), set()
    for row in sheet.rows[1:]:
        number = row[at["Identifier"]].removeprefix(PARTICIPANT)
        names = [row[at[name]] for name in ("Full name", "Email address") if name in at]
        student = _person(by_student, roster, MOODLE, number, names, grades[0].assignment)
        for grade in by_student.get(student, {}).values():
            found.add(student)
            if row[at.get("Grade can be changed", 0)] == "No":
                sheet.left.append(f"{student}: Moodle says that the grade cannot be changed")
            else:
                maximum = _maximum(row, at.get("Maximum Grade"), grade, sheet)
                row[at["Grade"]] = grade.out_of(maximum)
                if "Feedback comments" in at:
                    row[at["Feedback comments"]] = _comment(grade)
    sheet.left += _waiting(grades) + _missing(by_student, found, path)
    return sheet


def _read(path: Path) -> Sheet:
    rows, delimiter = read_csv(path)
    return Sheet(rows, delimiter=delimiter)


def _by_student(grades: Iterable[Grade]) -> dict[str, dict[str, Grade]]:
    found: dict[str, dict[str, Grade]] = {}
    for grade in grades:
        found.setdefault(grade.student, {})[grade.assignment] = grade
    return found


def _person(by_student: dict[str, dict[str, Grade]], roster: Roster, lms: str, number: str,
            names: list[str], assignment: str = "") -> str:  # fmt: skip
    """Which of our students a row is about: by number, else by a name that only one has."""
    for student in by_student:
        known = roster.number(student, lms, assignment if lms == MOODLE else "")
        if known and known == number.strip():
            return student
    wanted = {form for name in names if name for form in (name, plain_name(name))}
    same = [student for student in by_student if student in wanted
            and not roster.number(student, lms, assignment if lms == MOODLE else "")]  # fmt: skip
    return same[0] if len(same) == 1 else ""


def _column(header: list[str], grade: Grade, column: str, path: Path) -> int:
    """Where an assignment's column is: as named, else titled as the assignment or its notebook."""
    if column:
        titles = [name for name in header if column in (name, _title(name))]
    else:
        ours = {plain_name(grade.assignment), plain_name(grade.title)}
        titles = [name for name in header if plain_name(_title(name)) in ours]
    if len(titles) == 1:
        return header.index(titles[0])
    there = [name for name in header if _WITH_ID.fullmatch(name)]
    raise CourseError(f"{path} has {len(titles) or 'no'} columns for {column or grade.assignment};"
                      f" name one of them with --column: {', '.join(there)}")  # fmt: skip


def _title(name: str) -> str:
    found = _WITH_ID.fullmatch(name)
    return found["title"] if found else name


def _maximum(row: list[str], place: int | None, grade: Grade, sheet: Sheet) -> float:
    """The points that the LMS gives at most, in a sentence where they are not ours."""
    try:
        maximum = float(row[place].replace(",", ".")) if place is not None else grade.max_score
    except (ValueError, IndexError):
        return grade.max_score
    said = f"{grade.assignment}: scaled from {grade.max_score:g} to {maximum:g} points, as there"
    if maximum != grade.max_score and said not in sheet.left:
        sheet.left.append(said)
    return maximum


def _comment(grade: Grade) -> str:
    """What a student reads in Moodle, as HTML."""
    return "<br>".join(html.escape(f"{title}: {result}") for title, result in grade.tasks)


def _waiting(grades: list[Grade]) -> list[str]:
    return [f"{grade.student}, {grade.assignment}: left empty, a person still has to mark it"
            for grade in grades if grade.score is None]  # fmt: skip


def _missing(by_student: dict[str, dict[str, Grade]], found: set[str], path: Path) -> list[str]:
    return [f"{student}: no row of {path.name} is theirs" for student in sorted(by_student)
            if student not in found]  # fmt: skip
