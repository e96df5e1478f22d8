"""What was graded, and what nbgrader's gradebook says of it: scores, marks by people, penalties."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field

from nbgrader.api import Gradebook, MissingEntry

from autograder.grade.journal import Journal, Judgement
from autograder.places import CourseError, Places


@dataclass(frozen=True)
class Marks:
    """Scores of one submission. `by_cell` and `comments` are by grade_id."""

    score: float
    max_score: float
    late_penalty: float = 0
    waiting: bool = False
    by_cell: dict[str, float] = field(default_factory=dict)
    unmarked: frozenset[str] = frozenset()
    comments: dict[str, str] = field(default_factory=dict)


def graded(where: Places, assignments: Collection[str] = ()) -> list[Judgement]:
    """The latest judgements, by assignment and student; of all assignments for none named.

    Raises:
        CourseError: there is none.
    """
    latest = Journal(where.journal).latest()
    found = [j for j in latest if not assignments or j.assignment in assignments]
    if not found:
        of = f" of {', '.join(assignments)}" if latest else ""
        raise CourseError(f"nothing was graded yet{of} in {where.class_dir}: run autograder grade")
    return found


def read_marks(where: Places, judgements: list[Judgement]) -> dict[tuple[str, str], Marks]:
    """Marks by (assignment, student); the journal's own points where the gradebook has none."""
    found = {(j.assignment, j.student): Marks(j.points, j.max_points) for j in judgements}
    if not where.gradebook.exists():
        return found
    with warnings.catch_warnings(), Gradebook(f"sqlite:///{where.gradebook}") as gradebook:
        warnings.simplefilter("ignore")
        for place in found:
            try:
                found[place] = _marks(gradebook, where, *place)
            except MissingEntry:
                continue
    return found


def _marks(gradebook: Gradebook, where: Places, assignment: str, student: str) -> Marks:
    submission = gradebook.find_submission(assignment, student)
    stem = where.source(assignment).stem
    notebook = gradebook.find_submission_notebook(stem, assignment, student)
    penalty = submission.late_submission_penalty or 0
    return Marks(
        score=_plain(submission.score - penalty),
        max_score=_plain(submission.max_score),
        late_penalty=_plain(penalty),
        waiting=bool(submission.needs_manual_grade),
        by_cell={grade.name: _plain(grade.score) for grade in notebook.grades},
        unmarked=frozenset(grade.name for grade in notebook.grades if grade.needs_manual_grade),
        comments={c.name: c.comment for c in notebook.comments if c.comment},
    )


def _plain(number: float) -> float:
    """Whole points without a decimal point."""
    return int(number) if float(number).is_integer() else round(number, 2)
