"""Grade a class: every submission through the engine, with a progress bar; safe to interrupt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tqdm import tqdm

from autograder import gradebook, release
from autograder.grader import Grader, submissions
from autograder.journal import Judgement
from autograder.places import CourseError, Places


@dataclass
class Outcome:
    """What one run of grading did; `new` counts what was not found in the journal."""

    judgements: list[Judgement] = field(default_factory=list)
    new: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Verdicts, by kind."""
        return Counter(v.verdict for j in self.judgements for v in j.verdicts)


@dataclass(frozen=True)
class Options:
    """How to grade; see `autograder grade --help`."""

    again: bool = False
    sandboxed: bool = True
    seed: int | None = None
    limit: float | None = None
    progress: bool = True


def grade(where: Places, assignments: list[str], students: list[str] = (),
          options: Options = Options()) -> Outcome:  # fmt: skip
    """Judge what is new or changed, and bring the gradebook up to date.

    Each submission is in the journal, and then in the gradebook, before the next begins.

    Raises:
        CourseError: there is nothing to grade, no sandbox, or a released notebook is missing.
    """
    todo = submissions(where, assignments, list(students))
    outcome = Outcome()
    with Grader(where, sandboxed=options.sandboxed, seed=options.seed,
                limit=options.limit) as grader:  # fmt: skip
        for assignment in dict.fromkeys(assignment for _, assignment in todo):
            grader.released(assignment)
            release.register(where, assignment)
        with tqdm(todo, unit="submission", disable=not options.progress) as bar:
            for student, assignment in bar:
                _grade_one(grader, student, assignment, options.again, outcome)
                bar.set_postfix_str(" ".join(f"{n} {v}" for v, n in outcome.counts.most_common()))
    return outcome


def _grade_one(grader: Grader, student: str, assignment: str, again: bool,
               outcome: Outcome) -> None:  # fmt: skip
    """One submission: judged, then recorded if the gradebook does not hold exactly this."""
    submission = grader.take_in(student, assignment)
    judgement = None if again else grader.journal.find(submission.key)
    if judgement is None:
        judgement = grader.judged(submission, again)
        outcome.new += 1
    outcome.judgements.append(judgement)
    if not judgement.complete:
        why = next(v.message for v in judgement.verdicts if v.verdict == "infrastructure")
        outcome.failures.append(f"{student}, {assignment} could not be judged: {why}")
        return
    try:
        if not gradebook.is_recorded(grader.where, submission, judgement):
            gradebook.record(grader, submission)
    except CourseError as error:
        outcome.failures.append(str(error))
