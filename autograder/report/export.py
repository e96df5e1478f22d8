"""Grades as CSV: one row for each submission, or the form that Canvas or Moodle reads."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

import nbformat

from autograder.collect.roster import Roster
from autograder.collect.tables import no_formula
from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.pages import task_titles, title_of
from autograder.places import CourseError, Places
from autograder.report import lms as export_lms

COLUMNS = ("assignment", "student", "score", "max_score", "late_penalty", "needs_manual_grade",
           "verdicts", "graded", "seed", "sandbox")  # fmt: skip


def export(where: Places, file: TextIO) -> int:
    """Write the grades of the whole class; return how many rows.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = _graded(where)
    marks = read_marks(where, judgements)
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for judgement in judgements:
        row = _row(judgement, marks[judgement.assignment, judgement.student])
        writer.writerow(map(no_formula, row))
    return len(judgements)


def export_file(where: Places, path: Path) -> int:
    """As `export`, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        return export(where, file)


def canvas(where: Places, assignments: list[str], fill: Path | None = None,
           column: str = "") -> export_lms.Sheet:  # fmt: skip
    """The grades as a Canvas gradebook; `fill` is one that Canvas exported.

    Raises:
        CourseError: nothing was graded yet, or `fill` does not fit.
    """
    grades = _grades(where, assignments)
    roster = Roster(where.class_dir / "students.csv")
    if fill is None:
        return _all_safe(export_lms.canvas(grades, roster))
    return export_lms.fill_canvas(fill, grades, roster, column)


def moodle(where: Places, assignments: list[str], fill: Path | None = None) -> export_lms.Sheet:
    """The grades of one assignment as a Moodle grading worksheet; `fill` is one Moodle exported.

    Raises:
        CourseError: nothing was graded yet, several assignments are named, or `fill` does not fit.
    """
    if len(assignments) != 1:
        raise CourseError("Moodle has a worksheet for each assignment: name one with --assignment")
    grades = _grades(where, assignments)
    roster = Roster(where.class_dir / "students.csv")
    if fill is None:
        return _all_safe(export_lms.moodle(grades, roster))
    return export_lms.fill_moodle(fill, grades, roster)


def _graded(where: Places) -> list[Judgement]:
    judgements = Journal(where.journal).latest()
    if not judgements:
        raise CourseError(f"nothing was graded yet in {where.class_dir}: run autograder grade")
    return judgements


def _grades(where: Places, assignments: list[str]) -> list[export_lms.Grade]:
    judgements = [j for j in _graded(where) if j.assignment in assignments]
    if not judgements:
        raise CourseError(f"nothing was graded yet of {', '.join(assignments)}")
    marks = read_marks(where, judgements)
    sources = {name: nbformat.read(where.source(name), as_version=4)
               for name in {j.assignment for j in judgements}}  # fmt: skip
    return [_grade(j, marks[j.assignment, j.student], sources[j.assignment]) for j in judgements]


def _grade(judgement: Judgement, marks: Marks, source: nbformat.NotebookNode) -> export_lms.Grade:
    titles = task_titles(source)
    tasks = [(titles.get(v.question, v.question),
              f"{v.verdict}, {marks.by_cell.get(v.question, v.points)} of {v.max_points}")
             for v in judgement.verdicts]  # fmt: skip
    score = None if marks.waiting else max(0, marks.score)
    return export_lms.Grade(judgement.student, judgement.assignment, title_of(source), score,
                            marks.max_score, tasks)  # fmt: skip


def _row(judgement: Judgement, marks: Marks) -> list[object]:
    verdicts = " ".join(f"{v.question}={v.verdict}" for v in judgement.verdicts)
    return [judgement.assignment, judgement.student, marks.score, marks.max_score,
            marks.late_penalty, "yes" if marks.waiting else "no", verdicts, judgement.when,
            judgement.seed, judgement.sandbox]  # fmt: skip


def _all_safe(sheet: export_lms.Sheet) -> export_lms.Sheet:
    sheet.rows = [[cell if cell == "-" else no_formula(cell) for cell in row] for row in sheet.rows]
    return sheet
