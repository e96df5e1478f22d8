"""Grading again on request: the old score beside the new one, task by task, with the reason.

The journal keeps both judgements.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autograder.batch.grading import Options, grade
from autograder.grade import late
from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.grade.verdicts import Verdict, first_paragraph
from autograder.places import CourseError, Places


@dataclass(frozen=True)
class Regrade:
    """One submission graded again. `why` says what was not the same as the first time.

    `tasks` has a line for each task that ended in another way: before -> after.
    """

    student: str
    assignment: str
    old_score: float
    new_score: float
    why: str
    tasks: list[str]

    def __str__(self) -> str:
        change = f"{self.old_score:g} -> {self.new_score:g}"
        first = f"{self.student}, {self.assignment}: {change} points; {self.why}"
        return "\n  ".join([first, *self.tasks])


def regrade(
    where: Places, assignments: list[str], students: list[str], options: Options
) -> tuple[list[Regrade], list[str]]:
    """Grade again, and compare; also sentences about what could not be graded.

    Raises:
        CourseError: none of these submissions was graded before.
    """
    before, old = _latest(where, assignments, students)
    if not before:
        raise CourseError("none of these was graded before: autograder grade is the first time")
    outcome = grade(where, assignments, students, replace(options, again=True))
    late.apply(where)
    after, new = _latest(where, assignments, students)
    made = [
        compare(judgement, after[place], old[place], new[place])
        for place, judgement in before.items()
        if after[place] != judgement
    ]
    return made, outcome.failures


def compare(before: Judgement, after: Judgement, old: Marks, new: Marks) -> Regrade:
    """What changed between two judgements of one student's assignment, and why."""
    was = {verdict.question: verdict for verdict in before.verdicts}
    pairs = [(was[now.question], now) for now in after.verdicts if now.question in was]
    tasks = [
        f"{now.question}: {_said(one)} -> {_said(now)}"
        for one, now in pairs
        if (one.verdict, one.points, one.part) != (now.verdict, now.points, now.part)
    ]
    why = "; ".join(_reasons(before, after)) or (
        "nothing else changed: the answer itself depends on chance or on time"
        if tasks
        else "nothing changed: same submission, tests, inputs and environment"
    )
    return Regrade(after.student, after.assignment, old.score, new.score, why, tasks)


def _latest(
    where: Places, assignments: list[str], students: list[str]
) -> tuple[dict[tuple[str, str], Judgement], dict[tuple[str, str], Marks]]:
    latest = [j for j in Journal(where.journal).latest() if j.assignment in assignments]
    latest = [j for j in latest if not students or j.student in students]
    return {(j.assignment, j.student): j for j in latest}, read_marks(where, latest)


def _reasons(before: Judgement, after: Judgement) -> Iterator[str]:
    old, new = ({name: text for name, _, text in j.cells} for j in (before, after))
    if cells := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
        yield f"the submission changed, in {', '.join(cells)}"
    elif before.key != after.key:
        yield "the tests, their limits or the library changed since"
    for name in ("seed", "sandbox", "devices"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            yield f"{name} {now} instead of {was}"


def _said(verdict: Verdict) -> str:
    where = f" in “{verdict.part}”" if verdict.part else ""
    message = first_paragraph(verdict.message).partition("\n")[0]
    what = f"{verdict.verdict}{where} ({verdict.points} of {verdict.max_points})"
    return f"{what}: {message}" if message else what
