"""Grades as CSV: a row for each submission, or the file that Canvas or Moodle exported, filled in.

Their own file knows every column and id. Canvas (lib/gradebook_importer.rb): a column for each
assignment, called "TITLE (ID)", and a row with the points possible. Moodle's grading worksheet
(mod/assign/feedback/offline): one file for each assignment; a person is "Participant NUMBER".
"""

import contextlib
import html
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.collect.names import CANVAS, MOODLE
from autograder.collect.roster import Roster
from autograder.collect.tables import PARTICIPANT, Table, no_formulas, read_table
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, graded, read_marks
from autograder.pages import task_titles, title_of
from autograder.places import CourseError, Places

COLUMNS = (
    "assignment,student,score,max_score,late_penalty,needs_manual_grade,verdicts,graded,seed,sandbox,"
    "no_mark"
).split(",")
WHO = {  # the columns with a person's number, and with names that our students may have
    CANVAS: ("ID", "SIS Login ID", "SIS User ID", "Student"),
    MOODLE: ("Identifier", "Email address", "Full name"),
}


@dataclass
class Sheet(Table):
    """A CSV file to be, and sentences about what is not in it."""

    left: list[str] = field(default_factory=list)


def plain(where: Places, assignments: list[str]) -> Sheet:
    """A row for each submission.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = graded(where, assignments)
    marks = read_marks(where, judgements)
    return Sheet(COLUMNS, [_row(j, marks[j.assignment, j.student]) for j in judgements])


def filled(where: Places, assignment: str, path: Path, column: str = "") -> Sheet:
    """The file of Canvas or Moodle with the grades of one assignment, on the scale it states.

    `column` is the assignment's title in a gradebook of Canvas, if it is not ours.

    Raises:
        CourseError: nothing was graded yet, or the file is neither or lacks the column.
    """
    sheet = Sheet(**vars(read_table(path, (), "")))
    lms = MOODLE if "Maximum Grade" in sheet.columns else CANVAS
    if missing := {WHO[lms][0], "Grade" if lms == MOODLE else "Section"} - {*sheet.columns}:
        raise CourseError(
            f"{path} is neither a gradebook that Canvas exported nor a grading worksheet of Moodle:"
            f" it has no {' and no '.join(sorted(missing))}"
        )
    judgements = {one.student: one for one in graded(where, [assignment])}
    marks = read_marks(where, list(judgements.values()))
    source = nbformat.read(where.source(assignment), as_version=4)
    wanted = {column} if column else {assignment, title_of(source)}
    place = "Grade" if lms == MOODLE else _column(sheet.columns, wanted, path)
    possible = [row[place] for row in sheet.rows if "Points Possible" in row.get("Student", "")]
    rows = _rows(sheet, lms, Roster(where.students).students(lms, assignment), {*judgements})
    for student, one in judgements.items():
        mark, row = marks[assignment, student], rows.get(student)
        if why := _why_empty(one, mark, row):
            sheet.left.append(f"{student}: left empty, {why}")
            continue
        maximum = _number([row.get("Maximum Grade", ""), *possible], mark.max_score)
        row[place] = f"{round(max(0, mark.score) * maximum / (mark.max_score or 1), 2):g}"
        row["Feedback comments"] = _comment(one, mark, task_titles(source))  # a column of Moodle's
        said = f"scaled from {mark.max_score:g} to {maximum:g} points, as there"
        if maximum != mark.max_score and said not in sheet.left:
            sheet.left.append(said)
    return sheet


def _rows(
    sheet: Sheet, lms: str, known: dict[str, str], students: set[str]
) -> dict[str, dict[str, str]]:
    """The row of each student, found by number, else by a name of one whose number is not known."""
    (number, *names), free = WHO[lms], students - {*known.values()}
    found = {}
    for row in sheet.rows:
        named = next((row[name] for name in names if row.get(name) in free), "")
        found[known.get(row[number].removeprefix(PARTICIPANT).strip(), named)] = row
    return found


def _why_empty(one: Judgement, mark: Marks, row: dict[str, str] | None) -> str:
    if not one.complete or mark.waiting:
        return one.why_incomplete or "a person still has to mark it"
    if row is None:
        return "no row is theirs"
    changes = row.get("Grade can be changed") != "No"
    return "" if changes else "Moodle says that the grade cannot be changed"


def _number(stated: list[str], otherwise: float) -> float:
    """The first text that is a number."""
    for text in stated:
        with contextlib.suppress(ValueError):
            return float(text.replace(",", "."))
    return otherwise


def _column(header: list[str], titles: set[str], path: Path) -> str:
    """The column of one of these titles, which may have its id: "Ranks (1234)"."""
    places = [name for name in header if {name, re.sub(r" \(\d+\)$", "", name)} & titles]
    if len(places) == 1:
        return places[0]
    of = " or ".join(sorted(titles))
    raise CourseError(
        f"{path} has {len(places) or 'no'} columns called {of}: name one of its columns with"
        f" --column: {', '.join(name for name in header if name.endswith(')'))}"
    )


def _comment(one: Judgement, mark: Marks, titles: dict[str, str]) -> str:
    """How each task ended, as HTML."""
    tasks = [
        f"{titles.get(v.question, v.question)}: {v.verdict},"
        f" {mark.by_cell.get(v.question, v.points)} of {v.max_points}"
        for v in one.verdicts
    ]
    return "<br>".join(map(html.escape, tasks))


def _row(judgement: Judgement, mark: Marks) -> dict[str, object]:
    values = [judgement.assignment, judgement.student, mark.score, mark.max_score]
    values += [mark.late_penalty, "yes" if mark.waiting else "no"]
    values += [" ".join(f"{v.question}={v.verdict}" for v in judgement.verdicts), judgement.when]
    values += [judgement.seed, judgement.sandbox, judgement.why_incomplete]
    return no_formulas(dict(zip(COLUMNS, values, strict=True)))
