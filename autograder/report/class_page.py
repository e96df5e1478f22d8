"""The class on one page: how points are spread, which tasks are hardest, which wrong answers recur.

The page stands alone: no script, no other file, and its bars are boxes with widths. It links to the
feedback pages that `autograder feedback` wrote.

Two answers count as the same wrong answer when the same part of the same test ends them with the
same verdict and the same first paragraph of the message, whatever numbers stand in it: "rank 2: got
4.0, expected 6.0" and "rank 1: got 3.5, expected 5.0" are one mistake made with two inputs. What
is no answer (a blank, another assignment's notebook) is no wrong one.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import nbformat

from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks, graded, in_the_way, read_marks
from autograder.grade.verdicts import (
    INFRASTRUCTURE,
    NO_ANSWER,
    PASSED,
    VERDICTS,
    Verdict,
    first_paragraph,
)
from autograder.pages import render, task_cells, task_titles, title_of, write_page
from autograder.places import Places
from autograder.report.board import boards
from autograder.report.feedback import page_path

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?(?<![A-Za-z_\d])\d+(?:\.\d*)?(?:e[-+]?\d+)?j?")
_RUN = re.compile(r"#(?:[\s,;\[\]()]*#)+")


def write_report(where: Places, path: Path) -> Path:
    """Write the class page.

    Raises:
        CourseError: nothing was graded yet.
    """
    judgements = graded(where)
    marks = read_marks(where, judgements)
    by_assignment = groupby(judgements, key=lambda judgement: judgement.assignment)
    html = render(
        "grades.html",
        first_paragraph=first_paragraph,
        sheets=[_sheet(where, name, list(some), marks, path) for name, some in by_assignment],
        num_submissions=len(judgements),
        num_students=len({j.student for j in judgements}),
        levels="; ".join(sorted({f"{j.sandbox}, {j.devices}" for j in judgements if j.sandbox})),
        seconds=sum(j.seconds for j in judgements),
    )
    return write_page(path, html)


def _sheet(
    where: Places,
    name: str,
    judgements: list[Judgement],
    marks: dict[tuple[str, str], Marks],
    path: Path,
) -> dict[str, Any]:
    """One assignment, as the template reads it."""
    source = nbformat.read(where.source(name), as_version=4)
    of_all = [marks[name, j.student] for j in judgements]
    points = [one.score for one in of_all if one.score is not None]
    best = max(one.max_score for one in of_all)
    standings = Counter(judgement.standing for judgement in judgements)
    given: dict[str, list[Verdict]] = {}
    for verdict in (verdict for judgement in judgements for verdict in judgement.verdicts):
        given.setdefault(verdict.question, []).append(verdict)
    titles = {question: task_titles(source).get(question, question) for question in given}
    rows = {j.student: _row(where, j, marks[name, j.student], path) for j in judgements}
    tasks = [_task(titles[question], given[question]) for question in given]
    alike = groups(judgements)
    return {
        "assignment": name,
        "title": title_of(source),
        "max_points": best,
        "have_all": sum(number >= best for number in points),
        "median": median(points or [0]),
        "no_answer": {kind: standings[kind] for kind in NO_ANSWER if standings[kind]},
        "in_the_way": in_the_way(judgements),
        "counts": _whole(points, best),
        "tasks": sorted(tasks, key=lambda task: task["passed"]),
        "boards": boards(judgements, titles),
        "questions": titles,
        "rows": rows,
        "alike": [
            (students, example, _code(rows[students[0]], example, source))
            for students, example in alike
            if len(students) > 1
        ],
        "num_alone": sum(len(students) == 1 for students, _ in alike),
    }


def _whole(points: list[float], best: float) -> dict[int, int]:
    """How many have each number of points, rounded down; who has extra ones has all."""
    most = int(best)
    counts = Counter(min(max(math.floor(number), 0), most) for number in points)
    return {number: counts[number] for number in range(most + 1)}


def _row(where: Places, judgement: Judgement, marks: Marks, path: Path) -> dict[str, Any]:
    """One submission; `feedback` is the address of its page, or empty."""
    feedback = page_path(where, judgement)
    return {
        "student": judgement.student,
        "judgement": judgement,
        "marks": marks,
        "verdicts": {verdict.question: verdict for verdict in judgement.verdicts},
        "feedback": quote(os.path.relpath(feedback, path.parent)) if feedback.exists() else "",
    }


def _task(title: str, verdicts: list[Verdict]) -> dict[str, Any]:
    """How one task went over the class."""
    counts = Counter(v.verdict for v in verdicts)
    parts = Counter((v.part, v.hidden) for v in verdicts if v.verdict != PASSED and v.part)
    return {
        "title": title,
        "counts": {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]},
        "passed": counts[PASSED],
        "asked": len(verdicts),
        "parts": parts.most_common(3),
    }


def _code(row: dict[str, Any], example: Verdict, source: nbformat.NotebookNode) -> str:
    """What a student wrote for the question of a verdict."""
    written = {name: text for name, _, text in row["judgement"].cells}
    cells = task_cells(source).get(example.question, [])
    return "\n\n".join(written.get(name, "") for name in cells)


def groups(judgements: Iterable[Judgement]) -> list[tuple[list[str], Verdict]]:
    """Students who fail one test in the same way, and the first one's verdict; most first."""
    found: dict[tuple[str, ...], tuple[list[str], Verdict]] = {}
    for judgement in judgements:
        for verdict in judgement.verdicts:
            if verdict.verdict not in (PASSED, *NO_ANSWER, INFRASTRUCTURE):
                same = masked(first_paragraph(verdict.message))
                key = (verdict.question, verdict.verdict, verdict.part, same)
                found.setdefault(key, ([], verdict))[0].append(judgement.student)
    return sorted(found.values(), key=lambda group: (-len(group[0]), group[1].question))


def masked(text: str) -> str:
    """A text with each number, and each row of numbers, as one #."""
    return _RUN.sub("#", _NUMBER.sub("#", " ".join(text.split())))
