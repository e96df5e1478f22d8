"""Late hand-ins: due dates and a policy in class.toml (EXAMPLE), kept in nbgrader's gradebook.

nbgrader knows due dates, extensions and each submission's timestamp.txt, and so how late it came;
what that costs is entered by `apply`, for all that was graded, so a changed policy, a due date set
in the formgrader, a mark given or a timestamp.txt written by hand later needs no grading.
"""

import math
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from autograder.collect.door import hand_ins
from autograder.collect.hand_ins import NAMES, who_is_who
from autograder.collect.uploads import read_file
from autograder.database import (
    Assignment,
    InvalidEntry,
    MissingEntry,
    Student,
    SubmittedAssignment,
    opened_gradebook,
    parse_utc,
)
from autograder.pages import write_page
from autograder.places import CourseError, Places
from byhand.words import counted

FILE = "class.toml"
APPLIED = "class.applied.toml"  # what FILE said when it was last applied: what went is taken back
EXAMPLE = """[late]
percent_per_day = 10     # of the score, for each day begun
most_percent = 50
grace_minutes = 15

[due]
01_ranks = 2026-03-01T23:59:00+01:00    # without an offset: this machine's time

[extension.01_ranks]     # days for one student
ada = 2
"""
NO_POLICY = ValueError, TypeError, AttributeError, OverflowError  # of TOML, UTF-8 and dates, too
RATES = "percent_per_day", "most_percent", "grace_minutes"
MOST = 1_000_000  # of any number there: what is longer, or no number, no date can hold
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True)
class Policy:
    """What lateness costs; `due` is in UTC, `extension` in days by assignment and student."""

    percent_per_day: float = 0
    most_percent: float = 100
    grace_minutes: float = 0
    due: dict[str, datetime] = field(default_factory=dict)
    extension: dict[str, dict[str, float]] = field(default_factory=dict)

    def rule(self) -> str:
        """What lateness costs, as a sentence to a student."""
        if not self.percent_per_day:
            return "Lateness costs nothing here."
        most = f", {self.most_percent:g} % at most" if self.most_percent < 100 else ""
        grace = f"; the first {self.grace_minutes:g} minutes are free" * bool(self.grace_minutes)
        return f"Each day begun costs {self.percent_per_day:g} % of the score{most}{grace}."

    def penalty(self, score: float, seconds_late: float) -> float:
        """Points that a score loses, to two decimals; never more than the score."""
        days = math.ceil((seconds_late - 60 * self.grace_minutes) / _SECONDS_PER_DAY)
        percent = min(self.percent_per_day * max(days, 0), self.most_percent, 100)
        return round(max(score, 0) * percent / 100, 2)


def class_policy(where: Places) -> Policy:
    """The policy of a class; one without penalties where it has no class.toml.

    Raises:
        CourseError: the file cannot be read, says something that is no policy, or names an
            assignment that there is not.
    """
    path, known = where.class_dir / FILE, where.assignments()
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        policy = _policy(tomllib.loads(text))
    except NO_POLICY as error:
        sentence = f"{path} is no description of due dates: {error}. One looks like this:"
        raise CourseError(f"{sentence}\n\n{EXAMPLE}") from None
    if unknown := {*policy.due, *policy.extension} - {*known}:
        names = ", ".join(sorted(unknown))
        raise CourseError(f"{path} names {names}, no assignment; there are {', '.join(known)}")
    return policy


def _policy(data: dict[str, Any]) -> Policy:
    """The policy that a file says; raises one of NO_POLICY if none."""
    tables = {"late": {}, "due": {}, "extension": {}}
    for name, table in data.items():
        if name not in tables or not isinstance(table, dict):
            raise ValueError(f"{name} is none of the tables [late], [due], [extension.ASSIGNMENT]")
        if name == "late" and (unknown := {*table} - {*RATES}):
            raise ValueError(f"[late] has {', '.join(RATES)}, and no {', '.join(sorted(unknown))}")
        if name == "extension" and not all(isinstance(one, dict) for one in table.values()):
            raise ValueError("[extension] needs an assignment behind a dot: [extension.01_ranks]")
    late, due, extension = (tables | data).values()
    policy = Policy(
        **{name: _number(name, value) for name, value in late.items()},
        due={name: _moment(name, value) for name, value in due.items()},
        extension={
            name: {student: _number(student, days) for student, days in students.items()}
            for name, students in extension.items()
        },
    )
    for name, students in policy.extension.items():
        most, due = max(students.values(), default=0), policy.due.get(name, datetime.min)
        if timedelta(most) > datetime.max - due:
            raise ValueError(f"{name} is due on {due} UTC: {most:g} days later is after year 9999")
    return policy


def apply(where: Places) -> list[str]:
    """Bring due dates, extensions and penalties in the gradebook up to date, and who is in it.

    Returns a sentence for each extension of somebody who handed in nothing: a name mistyped?

    Raises:
        CourseError: class.toml is wrong, or another program is using the gradebook.
    """
    policy, strangers = class_policy(where), []
    if where.gradebook.exists():
        before = _applied_before(where)
        with opened_gradebook(where) as gradebook:
            for name in where.assignments():
                with suppress(MissingEntry):
                    assignment = gradebook.find_assignment(name)
                    _take_back(assignment, before, policy)
                    strangers += _apply_to(assignment, policy, where)
            handed_in = {student for student, _ in hand_ins(where, where.assignments())}
            for student in sorted(handed_in - {one.id for one in gradebook.students}):
                with suppress(InvalidEntry):  # another process was faster
                    gradebook.add_student(student)
            _name(gradebook.students, who_is_who(where).get(NAMES, {}))
            gradebook.db.commit()
        _is_applied(where)
    return strangers


def lateness(policy: Policy, submission: SubmittedAssignment) -> str:
    """When a late submission was due, when it came, and what that costs; else nothing."""
    if not submission.total_seconds_late:
        return ""
    due, came = (f"{at:%Y-%m-%d %H:%M}" for at in (submission.duedate, submission.timestamp))
    days = submission.extension and submission.extension / timedelta(days=1)
    extended = f", with your extension of {counted(days, 'day', 'g')}" if days else ""
    return f"It was due on {due} UTC{extended}, and came on {came} UTC. {policy.rule()}"


def _applied_before(where: Places) -> Policy:
    """The policy that was applied last."""
    with suppress(OSError, *NO_POLICY):
        return _policy(tomllib.loads((where.class_dir / APPLIED).read_text(encoding="utf-8")))
    return Policy()


def _is_applied(where: Places) -> None:
    """Remember what FILE says, if that is news."""
    texts = [
        path.read_text(encoding="utf-8") if path.exists() else ""
        for path in (where.class_dir / FILE, where.class_dir / APPLIED)
    ]
    if texts[0] != texts[1]:
        write_page(where.class_dir / APPLIED, texts[0])


def _take_back(assignment: Assignment, before: Policy, now: Policy) -> None:
    """The due date and the extensions that the file gave, and gives no more. What was set in the
    formgrader, also since then, stays."""
    if assignment.name not in now.due and assignment.duedate == before.due.get(assignment.name):
        assignment.duedate = None
    given, kept = (one.extension.get(assignment.name, {}) for one in (before, now))
    for submission in assignment.submissions:
        student = submission.student.id
        if student in {*given} - {*kept} and submission.extension == timedelta(given[student]):
            submission.extension = None


def _name(students: list[Student], known: dict[str, str]) -> None:
    """Give each student the name that an LMS told, else one made of their folder's.

    The formgrader shows it, or None, None. What a person wrote there stays.
    """
    for student in students:
        made = _first_and_last(student.id)
        if (student.first_name, student.last_name) in ((None, None), made):
            name = known.get(student.id, student.id)
            student.first_name, student.last_name = _first_and_last(name)


def _first_and_last(name: str) -> tuple[str, str]:
    """(Ada, Lovelace) of "Ada Lovelace" and of "Lovelace, Ada"; of one word the last is all."""
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.rpartition(" ")
    return first.strip() or "–", last.strip()


def _apply_to(assignment: Assignment, policy: Policy, where: Places) -> list[str]:
    assignment.duedate = policy.due.get(assignment.name, assignment.duedate)
    days = policy.extension.get(assignment.name, {})
    for submission in assignment.submissions:
        student = submission.student.id
        data, _ = read_file(where.submitted / student / assignment.name / "timestamp.txt", 100)
        with suppress(ValueError, OverflowError):
            submission.timestamp = parse_utc(data.decode()) if data else None
        if student in days:
            submission.extension = timedelta(days=days[student])
        for notebook in submission.notebooks:
            penalty = policy.penalty(notebook.score, submission.total_seconds_late)
            notebook.late_submission_penalty = penalty or None
    strangers = sorted({*days} - {submission.student.id for submission in assignment.submissions})
    of = f"{FILE}, [extension.{assignment.name}]"
    return [f"{of}: nothing of {name} is graded; is the name right?" for name in strangers]


def _number(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        raise ValueError(f"{name} has to be a number from 0 to {MOST:,}, and is {value!r}")
    return value


def _moment(name: str, value: Any) -> datetime:
    """A date or time as nbgrader keeps it: in UTC, without saying so. A date is its last second."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(23, 59, 59))
    if not isinstance(value, datetime):
        raise ValueError(f"{name} has to be a date or a time, and is {value!r}")
    return value.astimezone(UTC).replace(tzinfo=None)
