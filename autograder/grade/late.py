"""Late hand-ins: due dates and a policy in class.toml (EXAMPLE), nbgrader's own penalties.

nbgrader compares the due date in its gradebook with a submission's timestamp.txt, asks a
LateSubmissionPlugin what that costs, and keeps the answer. `LatePenalty` is that plugin; `apply`
does the same for all that was graded, so a changed policy, a due date set in the formgrader or a
mark given by hand later needs no grading. What Canvas marks late came at an unknown time: it is
late by as little as costs anything, unless the student has an extension.
"""

import math
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, MissingEntry
from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Unicode

from autograder.collect.hand_ins import is_late
from autograder.places import CourseError, Places
from autograder.release.generate import opened_gradebook

FILE = "class.toml"
EXAMPLE = """[late]
percent_per_day = 10     # of the score, for each day begun
most_percent = 50
grace_minutes = 15

[due]
01_ranks = 2026-03-01T23:59:00+01:00    # without an offset: this machine's time

[extension.01_ranks]     # days for one student
ada = 2
"""
_SECONDS_PER_DAY = 86_400
_NUMBERS = ("percent_per_day", "most_percent", "grace_minutes")


@dataclass(frozen=True)
class Policy:
    """What lateness costs; `due` is in UTC, `extensions` in days by (assignment, student)."""

    percent_per_day: float = 0
    most_percent: float = 100
    grace_minutes: float = 0
    due: dict[str, datetime] = field(default_factory=dict)
    extensions: dict[tuple[str, str], float] = field(default_factory=dict)

    def penalty(self, score: float, seconds_late: float) -> float:
        """Points that a score loses, to two decimals; never more than the score."""
        late = seconds_late - 60 * self.grace_minutes
        if late <= 0 or score <= 0:
            return 0.0
        percent = self.percent_per_day * math.ceil(late / _SECONDS_PER_DAY)
        return round(score * min(percent, self.most_percent, 100) / 100, 2)


class LatePenalty(LateSubmissionPlugin):
    """nbgrader's question what lateness costs, answered from class.toml."""

    policy_file = Unicode(help="The class.toml of the class.").tag(config=True)

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        """Points to take off; nbgrader asks only for late submissions."""
        return read_policy(Path(self.policy_file)).penalty(score, total_seconds_late)


def read_policy(path: Path) -> Policy:
    """The policy in a class.toml; one without penalties where there is no file.

    Raises:
        CourseError: the file cannot be read, or says something that is no policy.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return _policy(tomllib.loads(text))
    except ValueError as error:  # of TOML and UTF-8, too
        key, why = error.args if len(error.args) == 2 else ("", error)
        line = next((n for n, said in enumerate(text.splitlines(), 1) if key and key in said), 0)
        place = f"line {line}: " if line else ""
        sentence = f"{path} is no description of due dates: {place}{why}. One looks like this:"
        raise CourseError(f"{sentence}\n\n{EXAMPLE}") from None


def _policy(data: dict[str, Any]) -> Policy:
    """The policy that a file says.

    Raises:
        ValueError: it says none; the arguments are the wrong word, and why it is wrong.
    """
    late, due, extension = (_table(data, name) for name in ("late", "due", "extension"))
    for name in [*(data.keys() - {"late", "due", "extension"}), *(late.keys() - {*_NUMBERS})]:
        raise ValueError(name, f"nothing here is called {name}")
    return Policy(
        **{name: _number(name, value) for name, value in late.items()},
        due={name: _moment(name, value) for name, value in due.items()},
        extensions={
            (name, student): _number(student, days)
            for name in extension
            for student, days in _table(extension, name, f"extension.{name}").items()
        },
    )


def _table(data: dict[str, Any], name: str, header: str = "") -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(name, f"{name} has to be a table, [{header or name}] on a line of its own")
    return value


def class_policy(where: Places) -> Policy:
    """The policy of a class.

    Raises:
        CourseError: its class.toml is wrong, or names an assignment that there is not.
    """
    path, known = where.class_dir / FILE, where.assignments()
    policy = read_policy(path)
    unknown = {*policy.due, *(name for name, _ in policy.extensions)} - set(known)
    if unknown:
        names = ", ".join(sorted(unknown))
        raise CourseError(f"{path} names {names}, no assignment; there are {', '.join(known)}")
    return policy


def apply(where: Places) -> None:
    """Bring due dates, extensions and penalties in the gradebook up to date.

    Raises:
        CourseError: class.toml is wrong, or another program is using the gradebook.
    """
    policy = class_policy(where)
    if where.gradebook.exists():
        with opened_gradebook(where) as gradebook:
            for assignment in where.assignments():
                with suppress(MissingEntry):
                    _apply_to(gradebook.find_assignment(assignment), policy, where)
            gradebook.db.commit()


def _apply_to(assignment: Assignment, policy: Policy, where: Places) -> None:
    assignment.duedate = policy.due.get(assignment.name, assignment.duedate)
    for submission in assignment.submissions:
        days = policy.extensions.get((assignment.name, submission.student.id))
        submission.extension = timedelta(days=days) if days else submission.extension
        seconds = submission.total_seconds_late
        if not submission.extension and is_late(where, submission.student.id, assignment.name):
            seconds = max(seconds, 60 * policy.grace_minutes + 1)
        for notebook in submission.notebooks:
            notebook.late_submission_penalty = policy.penalty(notebook.score, seconds) or None


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(name, f"{name} has to be a number that is not negative, and is {value!r}")
    return value


def _moment(name: str, value: Any) -> datetime:
    """A date or time as nbgrader keeps it: in UTC, without saying so. A date is its last second."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(23, 59, 59))
    if not isinstance(value, datetime):
        raise ValueError(name, f"{name} has to be a date or a time, and is {value!r}")
    return value.astimezone(UTC).replace(tzinfo=None)
