"""Grades as CSV: a row for each submission, or the form that Canvas or Moodle reads.

Canvas (lib/gradebook_importer.rb): the columns Student, ID, SIS Login ID, Section, then one for
each assignment, called "TITLE (ID)" where Canvas knows it; a second row with the points possible.
Moodle's grading worksheet (mod/assign/feedback/offline): one file for each assignment; a person is
"Participant NUMBER", the columns Identifier, Grade and Last modified (grade) must be there.

The safest way is to fill in the file that the LMS itself exported, which knows every id: `fill`.
Without one, a file of our own is made with a row for each student, and filled in the same way.
"""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.collect.names import CANVAS, MOODLE, plain_name
from autograder.collect.roster import Roster
from autograder.collect.tables import PARTICIPANT, no_formula, read_csv
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, graded, read_marks
from autograder.pages import task_titles, title_of
from autograder.places import CourseError, Places

COLUMNS = (
    "assignment,student,score,max_score,late_penalty,needs_manual_grade,verdicts,graded,seed,sandbox,"
    "no_mark"
).split(",")
CANVAS_COLUMNS = ["Student", "ID", "SIS Login ID", "Section"]
MOODLE_COLUMNS = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments"
).split(",")
POINTS_ROW = "    Points Possible"
_WITH_ID = re.compile(r"(?P<title>.*?) \(\d+\)")


@dataclass(frozen=True)
class Grade:
    """One submission: its score (None with `why` there is none yet), its tasks as HTML."""

    student: str
    assignment: str
    title: str
    score: float | None
    max_score: float
    comment: str
    why: str = ""

    def out_of(self, maximum: float) -> str:
        """The score on a scale that ends at `maximum`, as text; empty while it is not known."""
        if self.score is None:
            return ""
        return f"{round(self.score * maximum / self.max_score, 2):g}" if self.max_score else "0"


@dataclass
class Sheet:
    """A CSV file to be, and sentences about what is not in it."""

    rows: list[list[object]]
    delimiter: str = ","
    left: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The file."""
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, lineterminator="\n").writerows(self.rows)
        return out.getvalue()


def plain(where: Places, assignments: list[str]) -> Sheet:
    """A row for each submission.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = graded(where, assignments)
    marks = read_marks(where, judgements)
    rows = [_plain_row(one, marks[one.assignment, one.student]) for one in judgements]
    return Sheet([COLUMNS, *rows])


def canvas(
    where: Places, assignments: list[str], fill: Path | None = None, column: str = ""
) -> Sheet:
    """The grades as a Canvas gradebook; `fill` is one that Canvas exported.

    Raises:
        CourseError: nothing was graded yet, `fill` is no gradebook or has no column for one.
    """
    grades, roster = _grades(where, assignments)
    sheet = _filled(fill, ("ID", "Section"), "gradebook of Canvas") or _own_canvas(grades, roster)
    header = sheet.rows[0]
    places = {g.assignment: _column(header, g, column, fill) for g in grades}
    nothing = [""] * len(header)
    maxima = next((row for row in sheet.rows[1:4] if "Points Possible" in row[0]), nothing)
    why = f"no row of {fill.name if fill else 'the gradebook'} is theirs"
    numbers = {grade.student: roster.number(grade.student, CANVAS) for grade in grades}
    columns = ("ID", "Student", "SIS Login ID", "SIS User ID")
    for row, grade in _matched(sheet, grades, numbers, why, *columns):
        at = places[grade.assignment]
        row[at] = grade.out_of(_maximum(maxima[at], grade, sheet))
    return sheet


def moodle(where: Places, assignments: list[str], fill: Path | None = None) -> Sheet:
    """The grades of one assignment as a Moodle grading worksheet; `fill` is one Moodle exported.

    Raises:
        CourseError: nothing was graded yet, several assignments are named, or `fill` does not fit.
    """
    if len(assignments) != 1:
        raise CourseError("Moodle has a worksheet for each assignment: name one with --assignment")
    grades, roster = _grades(where, assignments)
    needed = ("Identifier", "Grade", "Last modified (grade)")
    sheet = _filled(fill, needed, "grading worksheet of Moodle") or _own_moodle(grades, roster)
    at = {name: place for place, name in enumerate(sheet.rows[0])}
    why = f"no row of {fill.name} is theirs" if fill else "students.csv has no participant number"
    numbers = {g.student: roster.number(g.student, MOODLE, g.assignment) for g in grades}
    columns = ("Identifier", "Full name", "Email address")
    for row, grade in _matched(sheet, grades, numbers, why, *columns):
        if "Grade can be changed" in at and row[at["Grade can be changed"]] == "No":
            sheet.left.append(f"{grade.student}: Moodle says that the grade cannot be changed")
            continue
        maximum = row[at["Maximum Grade"]] if "Maximum Grade" in at else ""
        row[at["Grade"]] = grade.out_of(_maximum(maximum, grade, sheet))
        if "Feedback comments" in at:
            row[at["Feedback comments"]] = grade.comment
    return sheet


def _filled(fill: Path | None, needed: tuple[str, ...], what: str) -> Sheet | None:
    """The file that is to be filled in, if one was given."""
    if fill is None:
        return None
    sheet = Sheet(*read_csv(fill))
    if missing := sorted(set(needed) - set(sheet.rows[0] if sheet.rows else ())):
        raise CourseError(f"{fill} is no {what}: it lacks the columns {', '.join(missing)}")
    return sheet


def _matched(
    sheet: Sheet, grades: list[Grade], numbers: dict[str, str], why: str, *columns: str
) -> list[tuple[list[object], Grade]]:
    """Rows and their students' grades: found by number, else by a name that only one has.

    `columns` hold the number and the names. `sheet.left` gets a sentence for each grade that is
    not known, and for each student who is in no row, and `why`.
    """
    known, pairs = {mine: student for student, mine in numbers.items() if mine}, []
    for row in sheet.rows[1:]:
        cells = dict(zip(sheet.rows[0], row, strict=True))
        number, *names = (cells.get(name, "") for name in columns)
        wanted = {form for name in names if name for form in (name, plain_name(name))}
        same = [student for student in wanted if numbers.get(student) == ""]
        known_as = known.get(number.removeprefix(PARTICIPANT).strip())
        student = known_as or (same[0] if len(same) == 1 else "")
        pairs += [(row, grade) for grade in grades if grade.student == student]
    empty = [grade for grade in grades if grade.score is None]
    nowhere = sorted(set(numbers) - {grade.student for _, grade in pairs})
    sheet.left += [f"{one.student}, {one.assignment}: left empty, {one.why}" for one in empty]
    sheet.left += [f"{student}: {why}" for student in nowhere]
    return pairs


def _own_canvas(grades: list[Grade], roster: Roster) -> Sheet:
    """A gradebook of our own, empty: Canvas asks where a column or person is new to it."""
    best = {g.assignment: f"{g.max_score:g}" for g in sorted(grades, key=lambda g: g.assignment)}
    rows = [[*CANVAS_COLUMNS, *best], [POINTS_ROW, "", "", "", *best.values()]]
    for student in sorted({grade.student for grade in grades}):
        number, name = roster.number(student, CANVAS), no_formula(roster.name(student))
        rows.append([name, number, "" if number else student, "", *[""] * len(best)])
    return Sheet(rows)


def _own_moodle(grades: list[Grade], roster: Roster) -> Sheet:
    """A worksheet of our own, empty: only people whose number is known."""
    rows = [MOODLE_COLUMNS]
    for grade in grades:
        if number := roster.number(grade.student, MOODLE, grade.assignment):
            person = [f"{PARTICIPANT}{number}", no_formula(roster.name(grade.student))]
            rows.append([*person, "", "", "", f"{grade.max_score:g}", "Yes", "-", "-", ""])
    return Sheet(rows)


def _maximum(stated: str, grade: Grade, sheet: Sheet) -> float:
    """The points that the LMS gives at most, in a sentence where they are not ours."""
    try:
        maximum = float(stated.replace(",", "."))
    except ValueError:
        return grade.max_score
    said = f"{grade.assignment}: scaled from {grade.max_score:g} to {maximum:g} points, as there"
    if maximum != grade.max_score and said not in sheet.left:
        sheet.left.append(said)
    return maximum


def _column(header: list[str], grade: Grade, column: str, path: Path | None) -> int:
    """Where an assignment's column is: as named, else titled as the assignment or its notebook."""
    titles = {name: found["title"] for name in header if (found := _WITH_ID.fullmatch(name))}
    if column:
        places = [name for name in header if column in (name, titles.get(name))]
    else:
        ours = {plain_name(grade.assignment), plain_name(grade.title)}
        places = [name for name in header if plain_name(titles.get(name, name)) in ours]
    if len(places) == 1:
        return header.index(places[0])
    raise CourseError(
        f"{path} has {len(places) or 'no'} columns for {column or grade.assignment}; name one of"
        f" them with --column: {', '.join(titles)}"
    )


def _grades(where: Places, assignments: list[str]) -> tuple[list[Grade], Roster]:
    judgements = graded(where, assignments)
    marks = read_marks(where, judgements)
    names = {j.assignment for j in judgements}
    sources = {name: nbformat.read(where.source(name), as_version=4) for name in names}
    made = [_grade(j, marks[j.assignment, j.student], sources[j.assignment]) for j in judgements]
    return made, Roster(where.class_dir / "students.csv")


def _grade(one: Judgement, marks: Marks, source: nbformat.NotebookNode) -> Grade:
    titles = task_titles(source)
    tasks = [
        f"{titles.get(v.question, v.question)}: {v.verdict},"
        f" {marks.by_cell.get(v.question, v.points)} of {v.max_points}"
        for v in one.verdicts
    ]
    why = one.why_incomplete or ("a person still has to mark it" if marks.waiting else "")
    score = None if why else max(0, marks.score)
    comment = "<br>".join(map(html.escape, tasks))
    return Grade(
        one.student, one.assignment, title_of(source), score, marks.max_score, comment, why
    )


def _plain_row(judgement: Judgement, marks: Marks) -> list[object]:
    row = [judgement.assignment, judgement.student, marks.score, marks.max_score]
    row += [marks.late_penalty, "yes" if marks.waiting else "no"]
    row += [" ".join(f"{v.question}={v.verdict}" for v in judgement.verdicts), judgement.when]
    row += [judgement.seed, judgement.sandbox, judgement.why_incomplete]
    return [no_formula(value) for value in row]
