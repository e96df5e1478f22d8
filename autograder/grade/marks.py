"""What nbgrader's gradebook says of a submission: scores, marks given by people, penalties."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from nbgrader.api import Gradebook, MissingEntry

from autograder.grade.journal import Judgement
from autograder.places import Places


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
    comments = {c.name: c.comment for c in notebook.comments if c.comment}
    return Marks(
        score=_plain(submission.score - (submission.late_submission_penalty or 0)),
        max_score=_plain(submission.max_score),
        late_penalty=_plain(submission.late_submission_penalty or 0),
        waiting=bool(submission.needs_manual_grade),
        by_cell={grade.name: _plain(grade.score) for grade in notebook.grades},
        unmarked=frozenset(grade.name for grade in notebook.grades if grade.needs_manual_grade),
        comments=comments,
    )


def _plain(number: float) -> float:
    """Whole points without a decimal point."""
    return int(number) if float(number).is_integer() else round(number, 2)
