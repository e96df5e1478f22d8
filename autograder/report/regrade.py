"""Grading again on request: the old score beside the new one, task by task, with the reason.

Every regrade is a row in regrades.csv of the class directory, so that a request can be answered
months later.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace

from autograder.batch.grading import Options, grade
from autograder.collect.tables import Table, no_formulas, read_table
from autograder.grade import late
from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.grade.verdicts import Verdict, first_paragraph
from autograder.pages import write_page
from autograder.places import CourseError, Places

FILE = "regrades.csv"
COLUMNS = ("when", "student", "assignment", "request", "old_score", "new_score", "why", "tasks")


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
    where: Places,
    assignments: list[str],
    students: list[str],
    options: Options,
    request: str = "",
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
        compare(judgement, after[place], old[place], new[place], options.seed)
        for place, judgement in before.items()
        if after[place] != judgement
    ]
    _note(where, made, request)
    return made, outcome.failures


def compare(
    before: Judgement, after: Judgement, old: Marks, new: Marks, seed: int | None = None
) -> Regrade:
    """What changed between two judgements of one student's assignment, and why.

    `seed`: the one that was asked for; without, the tests decide it.
    """
    was, now = ({v.question: v for v in j.verdicts} for j in (before, after))
    pairs = {question: (was.get(question), now.get(question)) for question in {**was, **now}}
    tasks = [
        f"{question}: {_said(one)} -> {_said(other)}"
        for question, (one, other) in pairs.items()
        if _ending(one) != _ending(other)
    ]
    why = "; ".join(_reasons(before, after, seed)) or _without_reason(before, after, bool(tasks))
    return Regrade(after.student, after.assignment, old.score, new.score, why, tasks)


def read_regrades(where: Places) -> list[dict[str, str]]:
    """Every regrade of the class, the latest first."""
    path = where.class_dir / FILE
    return read_table(path, COLUMNS, "list of regrades").rows[::-1] if path.exists() else []


def _latest(
    where: Places, assignments: list[str], students: list[str]
) -> tuple[dict[tuple[str, str], Judgement], dict[tuple[str, str], Marks]]:
    latest = [j for j in Journal(where.journal).latest() if j.assignment in assignments]
    latest = [j for j in latest if not students or j.student in students]
    return {(j.assignment, j.student): j for j in latest}, read_marks(where, latest)


def _reasons(before: Judgement, after: Judgement, seed: int | None) -> Iterator[str]:
    old, new = ({name: text for name, _, text in j.cells} for j in (before, after))
    cells = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if cells:
        yield f"the submission changed, in {', '.join(cells)}"
    if before.seed != after.seed and seed is not None:
        yield f"the random inputs came from seed {seed} instead of {before.seed}"
    elif before.seed != after.seed:
        yield "the tests changed since"
    if before.sandbox != after.sandbox:
        yield f"it ran in another sandbox, {after.sandbox} instead of {before.sandbox}"
    if before.devices != after.devices:
        yield f"it ran with {after.devices} instead of {before.devices}"


def _without_reason(before: Judgement, after: Judgement, differs: bool) -> str:
    if before.key != after.key:
        return "the tests, their limits or the library changed since"
    if differs:
        return "nothing else changed: the answer itself depends on chance or on time"
    return "nothing changed: same submission, tests, inputs and environment"


def _note(where: Places, regrades: list[Regrade], request: str) -> None:
    """Add the regrades to those of the class."""
    about = {"when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
    about["request"] = request
    rows = [no_formulas({**vars(one), **about, "tasks": " | ".join(one.tasks)}) for one in regrades]
    rows = read_regrades(where)[::-1] + rows
    write_page(where.class_dir / FILE, Table(COLUMNS, rows).text())


def _ending(verdict: Verdict | None) -> tuple[object, ...]:
    if verdict is None:
        return ()
    return (verdict.verdict, verdict.points, verdict.max_points, verdict.part)


def _said(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not asked"
    where = f" in “{verdict.part}”" if verdict.part else ""
    message = first_paragraph(verdict.message).partition("\n")[0]
    what = f"{verdict.verdict}{where} ({verdict.points} of {verdict.max_points})"
    return f"{what}: {message}" if message else what
