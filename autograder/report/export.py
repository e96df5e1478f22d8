"""Grades as CSV: a row for each submission, or the file that Canvas or Moodle exported, filled in.

Their own file knows every column and id. Canvas (lib/gradebook_importer.rb): a column for each
assignment, called "TITLE (ID)", and a row with the points possible. Moodle's grading worksheet
(mod/assign/feedback/offline): one file for each assignment; a person is "Participant NUMBER".
"""

import contextlib
import re
from collections import defaultdict
from pathlib import Path

from autograder.collect.hand_ins import learn_names, who_is_who
from autograder.collect.names import CANVAS, MOODLE
from autograder.collect.tables import number_in, read_rows
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, graded, read_marks
from autograder.places import CourseError, Places

WHAT = "gradebook that Canvas exported, nor a grading worksheet of Moodle"
NAMES = "Student", "SIS Login ID", "SIS User ID", "Full name", "Email address"


def plain(where: Places, assignments: list[str]) -> list[dict[str, object]]:
    """A row for each submission.

    Raises:
        CourseError: nothing was graded yet.
    """
    rows, judgements = [], graded(where, assignments)
    marks = read_marks(where, judgements)
    for one in judgements:
        mark = marks[one.assignment, one.student]
        row: dict[str, object] = {
            "assignment": one.assignment,
            "student": one.student,
            "score": mark.score,
            "max_score": mark.max_score,
            "late_penalty": mark.late_penalty,
            "needs_manual_grade": "yes" if mark.waiting else "no",
            "verdicts": " ".join(f"{v.question}={v.verdict}" for v in one.verdicts),
            "graded": one.when,
            "no_mark": one.why_incomplete,
        }
        rows.append(row)
    return rows


def filled(
    where: Places, assignment: str, path: Path, column: str = ""
) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of Canvas or Moodle with the grades of one assignment, on the scale they state.

    Also sentences about what is not in it. What it calls people is kept, for the formgrader.
    `column` is the assignment's title in Canvas, if that
    is neither 01_ranks nor Ranks.

    Raises:
        CourseError: nothing was graded yet, or the file is neither or lacks the column.
    """
    sheet = read_rows(path, WHAT, {"Student", "ID"}, {"Identifier", "Grade", "Maximum Grade"})
    is_moodle = "Identifier" in sheet[0]
    titles = [column] if column else [assignment, where.source(assignment).stem]
    place = "Grade" if is_moodle else _column([*sheet[0]], titles, path)
    judgements = {one.student: one for one in graded(where, [assignment])}
    marks = read_marks(where, list(judgements.values()))
    known = who_is_who(where).get(f"{MOODLE} {assignment}" if is_moodle else CANVAS, {})
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in sheet:
        rows[_whose(row, known, {*judgements})].append(row)
    called = {who: _called(found[0]) for who, found in rows.items() if len(found) == 1}
    learn_names(where, {who: name for who, name in called.items() if who and name})
    ours = max(mark.max_score for mark in marks.values())
    theirs = _points_possible(sheet, place) or ours
    left = [f"scaled from {ours:g} to {theirs:g} points, as there"] if theirs != ours else []
    for student, one in judgements.items():
        mark = marks[assignment, student]
        if why := _why_left(one, mark, rows[student]):
            left.append(f"{student}: left as it was, {why}")
        else:
            points = max(0, mark.score or 0) * theirs / (mark.max_score or 1)
            rows[student][0][place] = f"{round(points, 2):g}"
    return sheet, left


def _whose(row: dict[str, str], known: dict[str, str], students: set[str]) -> str:
    """The student in a row: by number, else by a name of one whose number is not known."""
    named = (students - {*known.values()}) & {row.get(column) for column in NAMES}
    return known.get(number_in(row), min(named, default=""))


def _called(row: dict[str, str]) -> str:
    """Canvas says Lovelace, Ada; Moodle Ada Lovelace."""
    return row.get("Student") or row.get("Full name", "")


def _points_possible(sheet: list[dict[str, str]], place: str) -> float | None:
    """What Moodle states in each row, and Canvas in a row of its own."""
    for row in sheet:
        stated = row[place] if "Points Possible" in row.get("Student", "") else ""
        with contextlib.suppress(ValueError):
            return float(row.get("Maximum Grade", stated).replace(",", "."))
    return None


def _why_left(one: Judgement, mark: Marks, rows: list[dict[str, str]]) -> str:
    if not one.complete or mark.waiting:
        return one.why_incomplete or "a person still has to mark it"
    if len(rows) != 1:
        return "several rows have their name" if rows else "no row is theirs"
    changes = rows[0].get("Grade can be changed") != "No"
    return "" if changes else "Moodle says that the grade cannot be changed"


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
