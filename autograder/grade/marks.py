"""What was graded, and what nbgrader's gradebook says of it: scores, marks by people, penalties."""

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

import nbformat
from nbformat import NotebookNode

from autograder.cells import is_grade, is_solution
from autograder.collect.door import hand_ins, opened
from autograder.database import Gradebook, MissingEntry, opened_gradebook
from autograder.grade import late
from autograder.grade.engine import students_cells
from autograder.grade.intake import rebuild
from autograder.grade.journal import Journal, Judgement
from autograder.grade.verdicts import BLANK, infrastructure
from autograder.places import CourseError, Places

NO_MARK = "no mark"
CLOCKS = 60  # seconds that those of a cluster and of its disk may differ
_NOT_YET = "it was handed in, and not graded yet: run autograder grade"
_NEWER = "it was handed in again, and not graded yet: run autograder grade"
_NOT_ENTERED = "it was judged, and is not in the gradebook yet: run autograder grade"


@dataclass(frozen=True)
class Marks:
    """Scores of one submission. `by_cell` and `comments` are by grade_id.

    `score` is None where there is no mark. A person typed the points of the cells `by_hand`.
    """

    score: float | None
    max_score: float
    late_penalty: float = 0
    lateness: str = ""  # when it was due and came, and the rule
    waiting: bool = False
    by_cell: dict[str, float] = field(default_factory=dict)
    by_hand: frozenset[str] = frozenset()
    unmarked: frozenset[str] = frozenset()
    comments: dict[str, str] = field(default_factory=dict)


def everyone(where: Places, assignments: Collection[str] = ()) -> list[Judgement]:
    """Of each hand-in the latest judgement, by assignment and student; of all for none named.

    Whatever could not be judged, or was not yet, has one that is not complete and says why; so has
    newer work than was judged, whose time is in submitted/ already, and what a run that was ended
    judged last, where the gradebook holds marks of an earlier judgement.
    Due dates may have moved, and marks been given, since the class was graded: penalties follow.

    Raises:
        CourseError: class.toml is wrong, or another program is using the gradebook.
    """
    late.apply(where)
    names = list(assignments) or where.assignments()
    found: dict[tuple[str, str], Judgement | str]  # or why there is none
    found = {(assignment, student): _NOT_YET for student, assignment in hand_ins(where, names)}
    judged = {(j.assignment, j.student): j for j in Journal(where.journal).latest()}
    newer = {place for place in {*found} & {*judged} if _is_newer(where, judged[place])}
    found |= judged | dict.fromkeys(newer, _NEWER)
    for place in _entered(where, names) & {*judged} - newer:
        if not judged[place].is_recorded(where):
            found[place] = _NOT_ENTERED
    return [
        _not_judged(where, *place, one) if isinstance(one, str) else one
        for place, one in sorted(found.items())
        if place[0] in names
    ]


def graded(where: Places, assignments: Collection[str] = ()) -> list[Judgement]:
    """The same, where anything was handed in.

    Raises:
        CourseError: nothing was.
    """
    found = everyone(where, assignments)
    if not found:
        of = f" of {', '.join(assignments)}" if everyone(where) else ""
        raise CourseError(f"nothing was graded yet{of} in {where.class_dir}: run autograder grade")
    return found


def read_marks(where: Places, judgements: list[Judgement]) -> dict[tuple[str, str], Marks]:
    """Marks by (assignment, student); the journal's own points where the gradebook has none."""
    names = {judgement.assignment for judgement in judgements}
    sources = {name: nbformat.read(where.source(name), as_version=4) for name in names}
    found = {(j.assignment, j.student): _from_journal(j, sources[j.assignment]) for j in judgements}
    if not where.gradebook.exists():
        return found
    policy = late.class_policy(where)
    with opened_gradebook(where) as gradebook:
        for place in (place for place in found if found[place].score is not None):
            with contextlib.suppress(MissingEntry):
                found[place] = _marks(gradebook, where, policy, *place)
    return found


def in_the_way(judgements: Iterable[Judgement]) -> list[tuple[str, str, list[str], str]]:
    """What lies in the way of a mark: (kind, assignment, students, why), each cause once.

    The kind is NO_MARK, or what stands in the place of an answer: blank, unreadable.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in judgements:
        if kind := one.standing if one.complete else NO_MARK:
            why = one.why_incomplete or ("" if kind == BLANK else one.verdicts[0].message)
            found.setdefault((kind, one.assignment, why), []).append(one.student)
    return [(kind, name, students, why) for (kind, name, why), students in sorted(found.items())]


def _is_newer(where: Places, judgement: Judgement) -> bool:
    """Whether the work in submitted/ is other than what was judged.

    Only what changed on the disk since then is read: a course of 500 has 9,000 hand-ins.
    """
    place, name = (judgement.student, judgement.assignment), judgement.assignment
    folder, released = where.submitted.joinpath(*place), where.released(name)
    began = datetime.fromisoformat(judgement.when).timestamp() - judgement.seconds
    changed = max(path.lstat().st_ctime for path in [folder, *folder.glob("*")])
    if changed < began - CLOCKS or not released.exists():
        return False
    cells, _, _ = opened(where, *place)
    now = students_cells(rebuild(cells, nbformat.read(released, as_version=4)).notebook)
    return now != judgement.cells


def _entered(where: Places, assignments: Collection[str]) -> set[tuple[str, str]]:
    """(assignment, student) of what the gradebook has marks of."""
    if not where.gradebook.exists():
        return set()
    with opened_gradebook(where) as gradebook:
        return {
            (assignment.name, submission.student.id)
            for assignment in gradebook.assignments
            if assignment.name in assignments
            for submission in assignment.submissions
        }


def _not_judged(where: Places, assignment: str, student: str, why: str) -> Judgement:
    """What stands for the judgement on a submission that has none."""
    verdicts = [
        infrastructure(cell.id, cell.metadata.nbgrader.points, why)
        for cell in nbformat.read(where.source(assignment), as_version=4).cells
        if is_grade(cell) and not is_solution(cell)
    ]
    about = "", student, assignment, "", 0, "", 0.0, []
    return Judgement(*about, verdicts, not_judged=why)


def _from_journal(judgement: Judgement, source: NotebookNode) -> Marks:
    """What a judgement alone says of a mark: answers in words wait for a person."""
    graded = (cell for cell in source.cells if is_grade(cell) and is_solution(cell))
    words = sum(cell.metadata.nbgrader.points for cell in graded)
    return Marks(
        judgement.points if judgement.complete else None,
        judgement.max_points + words,
        waiting=judgement.complete and words > 0,
    )


def _marks(
    gradebook: Gradebook, where: Places, policy: late.Policy, assignment: str, student: str
) -> Marks:
    submission = gradebook.find_submission(assignment, student)
    stem = where.source(assignment).stem
    notebook = gradebook.find_submission_notebook(stem, assignment, student)
    penalty = submission.late_submission_penalty or 0
    return Marks(
        score=_plain(submission.score - penalty),
        max_score=_plain(submission.max_score),
        late_penalty=_plain(penalty),
        lateness=late.lateness(policy, submission),
        waiting=bool(submission.needs_manual_grade),
        by_cell={grade.name: _plain(grade.score) for grade in notebook.grades},
        by_hand=frozenset(
            grade.name for grade in notebook.grades if grade.manual_score is not None
        ),
        unmarked=frozenset(grade.name for grade in notebook.grades if grade.needs_manual_grade),
        comments={c.name: c.manual_comment for c in notebook.comments if c.manual_comment},
    )


def _plain(number: float) -> float:
    """Whole points without a decimal point."""
    return int(number) if float(number).is_integer() else round(number, 2)
