"""Grading again on request: the old score beside the new one, task by task, with the reason.

Every regrade is a row in regrades.csv of the class directory, so that a request can be answered
months later.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.batch.grading import Options, grade
from autograder.grade.journal import Journal, Judgement
from autograder.grade.marks import Marks, read_marks
from autograder.grade.verdicts import Verdict
from autograder.places import CourseError, Places
from autograder.report.wrong_answers import first_paragraph

FILE = "regrades.csv"
COLUMNS = ("when", "student", "assignment", "request", "old_score", "new_score", "why", "tasks")


@dataclass(frozen=True)
class Change:
    """One task, before and after."""

    question: str
    old: Verdict | None
    new: Verdict | None

    @property
    def differs(self) -> bool:
        """Whether the points or how it ended are not the same."""
        return _ending(self.old) != _ending(self.new)

    def __str__(self) -> str:
        return f"{self.question}: {_said(self.old)} -> {_said(self.new)}"


@dataclass(frozen=True)
class Regrade:
    """One submission graded again. `why` says what was not the same as the first time."""

    student: str
    assignment: str
    old_score: float
    new_score: float
    why: str
    tasks: list[Change]

    def __str__(self) -> str:
        change = f"{self.old_score:g} -> {self.new_score:g}"
        lines = [f"{self.student}, {self.assignment}: {change} points; {self.why}"]
        lines += [f"  {task}" for task in self.tasks if task.differs]
        return "\n".join(lines)


def regrade(where: Places, assignments: list[str], students: list[str], options: Options,
            request: str = "") -> tuple[list[Regrade], list[str]]:  # fmt: skip
    """Grade again, and compare; also sentences about what could not be graded.

    Raises:
        CourseError: none of these submissions was graded before.
    """
    before = _latest(where, assignments, students)
    if not before:
        raise CourseError("none of these was graded before: autograder grade is the first time")
    old = read_marks(where, list(before.values()))
    outcome = grade(where, assignments, students, replace(options, again=True))
    after = _latest(where, assignments, students)
    new = read_marks(where, list(after.values()))
    made = [compare(before[place], after[place], old[place], new[place], options.seed)
            for place in before if after[place].when != before[place].when
            or after[place] is not before[place]]  # fmt: skip
    _note(where.class_dir / FILE, made, request)
    return made, outcome.failures


def compare(before: Judgement, after: Judgement, old: Marks, new: Marks,
            seed: int | None = None) -> Regrade:  # fmt: skip
    """What changed between two judgements of one student's assignment, and why.

    `seed`: the one that was asked for; without, the tests decide it.
    """
    questions = dict.fromkeys(v.question for v in before.verdicts + after.verdicts)
    tasks = [Change(question, _of(before, question), _of(after, question))
             for question in questions]  # fmt: skip
    why = _why(before, after, any(task.differs for task in tasks), seed)
    return Regrade(after.student, after.assignment, old.score, new.score, why, tasks)


def read_regrades(where: Places) -> list[dict[str, str]]:
    """Every regrade of the class, the latest first."""
    path = where.class_dir / FILE
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))[::-1]


def _latest(where: Places, assignments: list[str],
            students: list[str]) -> dict[tuple[str, str], Judgement]:  # fmt: skip
    return {(j.assignment, j.student): j for j in Journal(where.journal).latest()
            if j.assignment in assignments and (not students or j.student in students)}  # fmt: skip


def _why(before: Judgement, after: Judgement, differs: bool, seed: int | None) -> str:
    reasons = list(_reasons(before, after, seed))
    if reasons:
        return "; ".join(reasons)
    if before.key != after.key:
        return "the tests, their limits or the library changed since"
    if differs:
        return "nothing else changed: the answer itself depends on chance or on time"
    return "nothing changed: same submission, tests, inputs and environment"


def _reasons(before: Judgement, after: Judgement, seed: int | None) -> Iterator[str]:
    old, new = ({name: text for name, _, text in j.cells} for j in (before, after))
    cells = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    if cells:
        yield f"the submission changed, in {', '.join(cells)}"
    if before.seed != after.seed:
        yield (f"the random inputs came from seed {seed} instead of {before.seed}"
               if seed is not None else "the tests changed since")  # fmt: skip
    if before.sandbox != after.sandbox:
        yield f"it ran in another sandbox, {after.sandbox} instead of {before.sandbox}"
    if before.devices != after.devices:
        yield f"it ran with {after.devices} instead of {before.devices}"


def _note(path: Path, regrades: list[Regrade], request: str) -> None:
    """Append the regrades to the file."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    first = not path.exists()
    with open(path, "a", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file)
        writer.writerows([COLUMNS] if first else [])
        for one in regrades:
            tasks = " | ".join(str(task) for task in one.tasks if task.differs)
            writer.writerow([now, one.student, one.assignment, request, one.old_score,
                             one.new_score, one.why, tasks])  # fmt: skip


def _of(judgement: Judgement, question: str) -> Verdict | None:
    return next((v for v in judgement.verdicts if v.question == question), None)


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
