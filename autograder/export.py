"""Grades as CSV: one row for each submission."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

from autograder.journal import Journal, Judgement
from autograder.marks import Marks, read_marks
from autograder.places import CourseError, Places

COLUMNS = ("assignment", "student", "score", "max_score", "late_penalty", "needs_manual_grade",
           "verdicts", "graded", "seed", "sandbox")  # fmt: skip


def export(where: Places, file: TextIO) -> int:
    """Write the grades of the whole class; return how many rows.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = Journal(where.journal).latest()
    if not judgements:
        raise CourseError(f"nothing was graded yet in {where.class_dir}: run autograder grade")
    marks = read_marks(where, judgements)
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for judgement in judgements:
        writer.writerow(map(_safe, _row(judgement, marks[judgement.assignment, judgement.student])))
    return len(judgements)


def export_file(where: Places, path: Path) -> int:
    """As `export`, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        return export(where, file)


def _row(judgement: Judgement, marks: Marks) -> list[object]:
    verdicts = " ".join(f"{v.question}={v.verdict}" for v in judgement.verdicts)
    return [judgement.assignment, judgement.student, marks.score, marks.max_score,
            marks.late_penalty, "yes" if marks.waiting else "no", verdicts, judgement.when,
            judgement.seed, judgement.sandbox]  # fmt: skip


def _safe(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets a quote before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
