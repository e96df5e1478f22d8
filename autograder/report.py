"""The class on one page: how points are spread, which tasks are hardest, and every verdict."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import nbformat

from autograder.feedback import page_path
from autograder.journal import Journal, Judgement
from autograder.marks import Marks, read_marks
from autograder.pages import render, task_titles, title_of, write_page
from autograder.places import CourseError, Places
from autograder.verdicts import PASSED, Verdict


@dataclass(frozen=True)
class Row:
    """One submission."""

    student: str
    points: float
    waiting: bool
    verdicts: list[Verdict]
    num_notes: int
    feedback: str


@dataclass(frozen=True)
class Sheet:
    """One assignment."""

    assignment: str
    title: str
    max_points: int
    median: float
    distribution: list[tuple[int, int]]
    tasks: list[dict[str, Any]]
    columns: list[str]
    rows: list[Row]


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
                  seconds=sum(j.seconds for j in judgements))  # fmt: skip
    return write_page(path, html)


def _sheet(where: Places, name: str, judgements: list[Judgement],
           marks: dict[tuple[str, str], Marks], path: Path) -> Sheet:  # fmt: skip
    source = nbformat.read(where.source(name), as_version=4)
    titles = task_titles(source)
    points = [j.points for j in judgements]
    best = max(j.max_points for j in judgements)
    spread = Counter(points)
    questions = [v.question for v in judgements[0].verdicts]
    rows = [_row(where, j, marks[name, j.student], path) for j in judgements]
    tasks = [_task(titles.get(q, q), [_verdict(j, q) for j in judgements]) for q in questions]
    return Sheet(name, title_of(source), best, median(points),
                 [(p, spread[p]) for p in range(best, -1, -1)],
                 sorted(tasks, key=lambda task: task["passed"]),
                 [titles.get(q, q) for q in questions], rows)  # fmt: skip


def _row(where: Places, judgement: Judgement, marks: Marks, path: Path) -> Row:
    feedback = page_path(where, judgement)
    link = quote(os.path.relpath(feedback, path.parent)) if feedback.exists() else ""
    return Row(judgement.student, marks.score, marks.waiting, judgement.verdicts,
               len(judgement.notes), link)  # fmt: skip


def _verdict(judgement: Judgement, question: str) -> Verdict | None:
    return next((v for v in judgement.verdicts if v.question == question), None)


def _task(title: str, verdicts: list[Verdict | None]) -> dict[str, Any]:
    """How one task went over the class."""
    given = [verdict for verdict in verdicts if verdict is not None]
    others = Counter(v.verdict for v in given if v.verdict != PASSED)
    parts = Counter(v.part for v in given if v.verdict != PASSED and v.part)
    worst = parts.most_common(1)
    return {
        "title": title, "total": len(given), "passed": sum(v.verdict == PASSED for v in given),
        "others": others.most_common(),
        "worst_part": f"{worst[0][0]} ({worst[0][1]})" if worst else "",
    }  # fmt: skip
