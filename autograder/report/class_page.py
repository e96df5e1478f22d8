"""The class on one page: how points are spread, which tasks are hardest, which wrong answers recur.

The page stands alone: no script, no other file; pictures are inside it. It links to the feedback
pages that `autograder feedback` wrote.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import nbformat

from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.grade.verdicts import PASSED, Verdict
from autograder.pages import render, task_cells, task_titles, title_of, write_page
from autograder.places import CourseError, Places
from autograder.report import figures as report_figures
from autograder.report import wrong_answers
from autograder.report.feedback import page_path
from autograder.report.figures import Drawing
from autograder.report.regrade import read_regrades
from byhand.figures.style import num_bytes_text

LIMITS = ("timeout", "resource")
NUM_ALIKE_SHOWN = 12


@dataclass(frozen=True)
class Row:
    """One submission; `feedback` is the address of its page, or empty."""

    student: str
    marks: Marks
    verdicts: list[Verdict | None]
    num_notes: int
    seconds: float
    feedback: str


@dataclass(frozen=True)
class Sheet:
    """One assignment."""

    assignment: str
    title: str
    max_points: int
    points: list[int]
    drawings: list[Drawing]
    tasks: list[dict[str, Any]]
    columns: list[str]
    alike: list[dict[str, Any]]
    num_alone: int
    rows: list[Row]

    @property
    def median(self) -> float:
        """Points that half of the submissions reach."""
        return median(self.points)


def write_report(where: Places, path: Path) -> Path:
    """Write the class page.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = Journal(where.journal).latest()
    if not judgements:
        raise CourseError(f"nothing was graded yet in {where.class_dir}: run autograder grade")
    marks = read_marks(where, judgements)
    names = sorted({j.assignment for j in judgements})
    sheets = [_sheet(where, name, [j for j in judgements if j.assignment == name], marks, path)
              for name in names]  # fmt: skip
    html = render("grades.html", sheets=sheets, num_submissions=len(judgements),
                  num_students=len({j.student for j in judgements}),
                  regrades=read_regrades(where),
                  levels="; ".join(sorted({f"{j.sandbox}, {j.devices}" for j in judgements})),
                  seconds=sum(j.seconds for j in judgements))  # fmt: skip
    return write_page(path, html)


def _sheet(where: Places, name: str, judgements: list[Judgement],
           marks: dict[tuple[str, str], Marks], path: Path) -> Sheet:  # fmt: skip
    source = nbformat.read(where.source(name), as_version=4)
    titles, points = task_titles(source), [j.points for j in judgements]
    best = max(j.max_points for j in judgements)
    questions = list(dict.fromkeys(v.question for j in judgements for v in j.verdicts))
    rows = [_row(where, j, marks[name, j.student], questions, path) for j in judgements]
    tasks = [_task(titles.get(q, q), [_verdict(j, q) for j in judgements]) for q in questions]
    groups = wrong_answers.groups(judgements)
    links = {row.student: row.feedback for row in rows}
    by_student = {j.student: j for j in judgements}
    alike = [_alike(group, titles, links, by_student[group.students[0]], task_cells(source))
             for group in groups if len(group.students) > 1]  # fmt: skip
    return Sheet(name, title_of(source), best, points, _drawings(points, best, tasks), tasks,
                 [titles.get(q, q) for q in questions], alike,
                 sum(len(group.students) == 1 for group in groups), rows)  # fmt: skip


def _drawings(points: list[int], best: int, tasks: list[dict[str, Any]]) -> list[Drawing]:
    return [
        report_figures.points_drawing(points, best, median(points)),
        report_figures.tasks_drawing([(task["title"], task["counts"]) for task in tasks]),
        report_figures.seconds_drawing([(task["title"], task["seconds"]) for task in tasks]),
    ]


def _row(where: Places, judgement: Judgement, marks: Marks, questions: list[str],
         path: Path) -> Row:  # fmt: skip
    feedback = page_path(where, judgement)
    link = quote(os.path.relpath(feedback, path.parent)) if feedback.exists() else ""
    return Row(judgement.student, marks, [_verdict(judgement, q) for q in questions],
               len(judgement.notes), judgement.seconds, link)  # fmt: skip


def _verdict(judgement: Judgement, question: str) -> Verdict | None:
    return next((v for v in judgement.verdicts if v.question == question), None)


def _task(title: str, verdicts: list[Verdict | None]) -> dict[str, Any]:
    """How one task went over the class."""
    given = [verdict for verdict in verdicts if verdict is not None]
    counts = Counter(v.verdict for v in given)
    parts = Counter((v.part, v.hidden) for v in given if v.verdict != PASSED and v.part)
    return {
        "title": title, "total": len(given), "passed": counts[PASSED], "counts": counts,
        "parts": [(part, hidden, count) for (part, hidden), count in parts.most_common(3)],
        "seconds": [v.seconds for v in given], "median": median(v.seconds for v in given),
        "slowest": max(v.seconds for v in given),
        "peak": num_bytes_text(peak) if (peak := max(v.peak_bytes for v in given)) else "",
        "limits": sum(counts[v] for v in LIMITS),
    }  # fmt: skip


def _alike(group: wrong_answers.Group, titles: dict[str, str], links: dict[str, str],
           first: Judgement, cells: dict[str, list[str]]) -> dict[str, Any]:  # fmt: skip
    """A wrong answer that several students gave, with the code of the first of them."""
    written = {name: text for name, _, text in first.cells}
    code = "\n\n".join(written.get(name, "") for name in cells.get(group.question, []))
    shown = group.students[:NUM_ALIKE_SHOWN]
    return {
        "title": titles.get(group.question, group.question), "verdict": group.example,
        "message": group.message, "count": len(group.students), "code": code,
        "students": [(student, links.get(student, "")) for student in shown],
        "more": len(group.students) - len(shown),
    }  # fmt: skip
