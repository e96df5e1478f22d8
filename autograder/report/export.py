"""Grades as CSV: a row for each submission, or the form that Canvas or Moodle reads.

Canvas (lib/gradebook_importer.rb): the columns Student, ID, SIS Login ID, Section, then one for
each assignment, called "TITLE (ID)" where Canvas knows it; a second row with the points possible.
Moodle's grading worksheet (mod/assign/feedback/offline): one file for each assignment; a person is
"Participant NUMBER", the columns Identifier, Grade and Last modified (grade) must be there.

The safest way is to fill in the file that the LMS itself exported, which knows every id: `fill`.
Without one, a file of our own is made with a row for each student, and filled in the same way.
"""

import html
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.collect.names import CANVAS, MOODLE, plain_name
from autograder.collect.roster import Roster
from autograder.collect.tables import PARTICIPANT, Table, no_formula, no_formulas, read_table
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
class Sheet(Table):
    """A CSV file to be, and sentences about what is not in it."""

    left: list[str] = field(default_factory=list)


def plain(where: Places, assignments: list[str], *_: object) -> Sheet:
    """A row for each submission.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = graded(where, assignments)
    marks = read_marks(where, judgements)
    return Sheet(COLUMNS, [_plain_row(j, marks[j.assignment, j.student]) for j in judgements])


def canvas(
    where: Places, assignments: list[str], fill: Path | None = None, column: str = ""
) -> Sheet:
    """The grades as a Canvas gradebook; `fill` is one that Canvas exported.

    Raises:
        CourseError: nothing was graded yet, `fill` is no gradebook or has no column for one.
    """
    grades, roster = _grades(where, assignments)
    sheet = _filled(fill, ("ID", "Section"), "gradebook of Canvas") or _own_canvas(grades, roster)
    places = {g.assignment: _column(sheet.columns, g, column, fill) for g in grades}
    first = sheet.columns[0]
    maxima = next((row for row in sheet.rows[:3] if "Points Possible" in row[first]), {})
    why = f"no row of {fill.name if fill else 'the gradebook'} is theirs"
    numbers = {grade.student: roster.number(grade.student, CANVAS) for grade in grades}
    columns = ("ID", "Student", "SIS Login ID", "SIS User ID")
    for row, grade in _matched(sheet, grades, numbers, why, *columns):
        place = places[grade.assignment]
        row[place] = grade.out_of(_maximum(maxima.get(place, ""), grade, sheet))
    return sheet


def moodle(where: Places, assignments: list[str], fill: Path | None = None, *_: object) -> Sheet:
    """The grades of one assignment as a Moodle grading worksheet; `fill` is one Moodle exported.

    Raises:
        CourseError: nothing was graded yet, several assignments are named, or `fill` does not fit.
    """
    if len(assignments) != 1:
        raise CourseError("Moodle has a worksheet for each assignment: name one with --assignment")
    grades, roster = _grades(where, assignments)
    needed = ("Identifier", "Grade", "Last modified (grade)")
    sheet = _filled(fill, needed, "grading worksheet of Moodle") or _own_moodle(grades, roster)
    why = f"no row of {fill.name} is theirs" if fill else "students.csv has no participant number"
    numbers = {g.student: roster.number(g.student, MOODLE, g.assignment) for g in grades}
    columns = ("Identifier", "Full name", "Email address")
    for row, grade in _matched(sheet, grades, numbers, why, *columns):
        if row.get("Grade can be changed") == "No":
            sheet.left.append(f"{grade.student}: Moodle says that the grade cannot be changed")
            continue
        row["Grade"] = grade.out_of(_maximum(row.get("Maximum Grade", ""), grade, sheet))
        row["Feedback comments"] = grade.comment
    return sheet


def _filled(fill: Path | None, needed: tuple[str, ...], what: str) -> Sheet | None:
    """The file that is to be filled in, if one was given."""
    return Sheet(**vars(read_table(fill, needed, what))) if fill else None


def _matched(
    sheet: Sheet, grades: list[Grade], numbers: dict[str, str], why: str, *columns: str
) -> list[tuple[dict[str, str], Grade]]:
    """Rows and their students' grades: found by number, else by a name that only one has.

    `columns` hold the number and the names. `sheet.left` gets a sentence for each grade that is
    not known, and for each student who is in no row, and `why`.
    """
    known, pairs = {mine: student for student, mine in numbers.items() if mine}, []
    for row in sheet.rows:
        number, *names = (row.get(name, "") for name in columns)
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
    rows = [{"Student": POINTS_ROW, **best}]
    for student in sorted({grade.student for grade in grades}):
        number, name = roster.number(student, CANVAS), no_formula(roster.name(student))
        rows.append({"Student": name, "ID": number, "SIS Login ID": "" if number else student})
    return Sheet([*CANVAS_COLUMNS, *best], rows)


def _own_moodle(grades: list[Grade], roster: Roster) -> Sheet:
    """A worksheet of our own, empty: only people whose number is known."""
    numbers = {g.student: roster.number(g.student, MOODLE, g.assignment) for g in grades}
    rows = [
        {
            "Identifier": f"{PARTICIPANT}{numbers[grade.student]}",
            "Full name": no_formula(roster.name(grade.student)),
            "Maximum Grade": f"{grade.max_score:g}",
            "Grade can be changed": "Yes",
            "Last modified (submission)": "-",
            "Last modified (grade)": "-",
        }
        for grade in grades
        if numbers[grade.student]
    ]
    return Sheet(MOODLE_COLUMNS, rows)


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


def _column(header: list[str], grade: Grade, column: str, path: Path | None) -> str:
    """An assignment's column: as named, else titled as the assignment or its notebook."""
    titles = {name: found["title"] for name in header if (found := _WITH_ID.fullmatch(name))}
    if column:
        places = [name for name in header if column in (name, titles.get(name))]
    else:
        ours = {plain_name(grade.assignment), plain_name(grade.title)}
        places = [name for name in header if plain_name(titles.get(name, name)) in ours]
    if len(places) == 1:
        return places[0]
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
    return made, Roster(where.students)


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


def _plain_row(judgement: Judgement, marks: Marks) -> dict[str, object]:
    values = [judgement.assignment, judgement.student, marks.score, marks.max_score]
    values += [marks.late_penalty, "yes" if marks.waiting else "no"]
    values += [" ".join(f"{v.question}={v.verdict}" for v in judgement.verdicts), judgement.when]
    values += [judgement.seed, judgement.sandbox, judgement.why_incomplete]
    return no_formulas(dict(zip(COLUMNS, values, strict=True)))
