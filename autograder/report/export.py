"""Grades as CSV: a row for each submission, or the file that Canvas or Moodle exported, filled in.

Their own file knows every column and id. Canvas (lib/gradebook_importer.rb): a column for each
assignment, called "TITLE (ID)", and a row with the points possible. Moodle's grading worksheet
(mod/assign/feedback/offline): one file for each assignment; a person is "Participant NUMBER".
"""

import contextlib
import html
import re
from pathlib import Path

import nbformat

from autograder.collect.names import CANVAS, MOODLE
from autograder.collect.roster import Roster
from autograder.collect.tables import PARTICIPANT, Table, no_formulas, read_table
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, graded, read_marks
from autograder.pages import task_titles
from autograder.places import CourseError, Places

NUMBER = {CANVAS: "ID", MOODLE: "Identifier"}  # the column with a person's number
NAMES = "Student", "SIS Login ID", "SIS User ID", "Full name", "Email address"


def plain(where: Places, assignments: list[str]) -> Table:
    """A row for each submission.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = graded(where, assignments)
    marks = read_marks(where, judgements)
    rows = [_row(one, marks[one.assignment, one.student]) for one in judgements]
    return Table([*rows[0]], rows)


def filled(where: Places, assignment: str, path: Path, column: str = "") -> tuple[Table, list[str]]:
    """The file of Canvas or Moodle with the grades of one assignment, on the scale it states.

    Also sentences about what is not in it. `column` is the assignment's title in Canvas, if that
    is neither 01_ranks nor Ranks.

    Raises:
        CourseError: nothing was graded yet, or the file is neither or lacks the column.
    """
    sheet, left = read_table(path), []
    lms = MOODLE if "Maximum Grade" in sheet.columns else CANVAS
    if missing := {NUMBER[lms], "Grade" if lms == MOODLE else "Section"} - {*sheet.columns}:
        raise CourseError(
            f"{path} is neither a gradebook that Canvas exported nor a grading worksheet of Moodle:"
            f" it has no {' and no '.join(sorted(missing))}"
        )
    judgements = {one.student: one for one in graded(where, [assignment])}
    marks = read_marks(where, list(judgements.values()))
    source = nbformat.read(where.source(assignment), as_version=4)
    titles = [column] if column else [assignment, where.source(assignment).stem]
    place = "Grade" if lms == MOODLE else _column(sheet.columns, titles, path)
    possible = [row[place] for row in sheet.rows if "Points Possible" in row.get("Student", "")]
    known = Roster(where.students).students(lms, assignment)
    rows = {_whose(row, row[NUMBER[lms]], known, {*judgements}): row for row in sheet.rows}
    for student, one in judgements.items():
        mark, row = marks[assignment, student], rows.get(student)
        if why := _why_empty(one, mark, row):
            left.append(f"{student}: left empty, {why}")
            continue
        maximum = _number([row.get("Maximum Grade", ""), *possible], mark.max_score)
        row[place] = f"{round(max(0, mark.score) * maximum / (mark.max_score or 1), 2):g}"
        row["Feedback comments"] = _comment(one, mark, task_titles(source))  # a column of Moodle's
        said = f"scaled from {mark.max_score:g} to {maximum:g} points, as there"
        if maximum != mark.max_score and said not in left:
            left.append(said)
    return sheet, left


def _whose(row: dict[str, str], number: str, known: dict[str, str], students: set[str]) -> str:
    """The student in a row: by number, else by a name of one whose number is not known."""
    named = (students - {*known.values()}) & {row.get(column) for column in NAMES}
    return known.get(number.removeprefix(PARTICIPANT).strip(), min(named, default=""))


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


def _column(header: list[str], titles: list[str], path: Path) -> str:
    """The column of one of these titles, in small letters or large, with its id: Ranks (1234)."""
    wanted = "|".join(map(re.escape, titles))
    places = [name for name in header if re.fullmatch(rf"({wanted})( \(\d+\))?", name, re.I)]
    if len(places) == 1:
        return places[0]
    raise CourseError(
        f"{path} has {len(places) or 'no'} columns called {' or '.join(titles)}: name one of its"
        f" columns with --column: {', '.join(name for name in header if name.endswith(')'))}"
    )


def _comment(one: Judgement, mark: Marks, titles: dict[str, str]) -> str:
    """How each task ended, as HTML."""
    tasks = [
        f"{titles.get(v.question, v.question)}: {v.verdict},"
        f" {mark.by_cell.get(v.question, v.points)} of {v.max_points}"
        for v in one.verdicts
    ]
    return "<br>".join(map(html.escape, tasks))


def _row(one: Judgement, mark: Marks) -> dict[str, object]:
    return no_formulas(
        {
            "assignment": one.assignment,
            "student": one.student,
            "score": mark.score,
            "max_score": mark.max_score,
            "late_penalty": mark.late_penalty,
            "needs_manual_grade": "yes" if mark.waiting else "no",
            "verdicts": " ".join(f"{v.question}={v.verdict}" for v in one.verdicts),
            "graded": one.when,
            "seed": one.seed,
            "sandbox": one.sandbox,
            "no_mark": one.why_incomplete,
        }
    )
