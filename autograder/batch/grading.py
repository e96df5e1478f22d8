"""Grade a class: every submission through the engine, with a progress bar; safe to interrupt.

Workers judge; this process alone writes. A judgement is on the disk, in the journal, before it
goes to nbgrader's gradebook, so that whatever ends this process, the next run does what is missing
and nothing twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from autograder.batch.workers import Place, judge_all
from autograder.grade import gradebook
from autograder.grade.engine import Grader, submissions
from autograder.grade.journal import Judgement
from autograder.places import CourseError, Places
from autograder.release import generate as release
from byhand.runtime.walls.gpus import NO_GPUS, Gpus


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
    """How to grade; see `autograder grade --help`. `judge` does what workers.judge_all does.

    `gpus`: what devices.chosen found out.
    """

    again: bool = False
    sandboxed: bool = True
    seed: int | None = None
    limit: float | None = None
    progress: bool = True
    jobs: int = 1
    judge: Callable[..., Iterator[Judgement]] = judge_all
    gpus: Gpus = NO_GPUS

    @property
    def engine(self) -> dict[str, Any]:
        """What decides a verdict: the arguments that every Grader of this run is made with."""
        return {"sandboxed": self.sandboxed, "seed": self.seed, "limit": self.limit,
                "gpus": self.gpus.count, "backend": self.gpus.backend}  # fmt: skip


def grade(where: Places, assignments: list[str], students: list[str] = (),
          options: Options = Options()) -> Outcome:  # fmt: skip
    """Judge what is new or changed, and bring the gradebook up to date.

    Raises:
        CourseError: there is nothing to grade, no sandbox, a released notebook is missing, the
            gradebook cannot be written, or another process grades this class.
        OSError: the disk is full.
    """
    todo = submissions(where, assignments, list(students))
    outcome = Outcome()
    with Grader(where, **options.engine) as grader, alone(where):
        for assignment in dict.fromkeys(assignment for _, assignment in todo):
            grader.released(assignment)
            release.check(where.source(assignment))
        _Run(grader, options, outcome).through(todo)
    outcome.judgements.sort(key=lambda j: (j.assignment, j.student))
    return outcome


class _Run:
    """One run over a class: what is known is recorded first, the rest as workers judge it."""

    def __init__(self, grader: Grader, options: Options, outcome: Outcome):
        self.grader, self.options, self.outcome = grader, options, outcome
        self._registered: set[str] = set()

    def through(self, todo: list[Place]) -> None:
        """Every submission, to its end."""
        every = 0.1 if sys.stderr.isatty() else 30.0  # seconds: a log wants fewer lines
        with tqdm(total=len(todo), unit="submission", smoothing=0.05, mininterval=every,
                  disable=not self.options.progress) as bar:  # fmt: skip
            missing = []
            for place in todo:
                judgement = self._known(place)
                if judgement is None:
                    missing.append(place)
                else:
                    self._take(judgement, bar)
            known = bar.n
            bar.reset()  # what was known says nothing of the speed
            bar.n = bar.initial = known
            where, options = self.grader.where, self.options
            judged = options.judge(where, missing, options.engine, options.jobs)
            with contextlib.closing(judged):
                for judgement in judged:
                    with uninterrupted():
                        self.grader.journal.append(judgement)
                        self.outcome.new += 1
                        self._take(judgement, bar)

    def _known(self, place: Place) -> Judgement | None:
        """The judgement on exactly this submission that an earlier run made, if any."""
        if self.options.again:
            return None
        journal, key = self.grader.journal, self.grader.take_in(*place).key
        judgement = journal.find(key)
        if judgement is not None and journal.last(*place) != judgement:
            journal.append(judgement)  # handed in again as it was before: this one counts now
        return judgement

    def _take(self, judgement: Judgement, bar: tqdm) -> None:
        """Record a judgement, if the gradebook does not hold exactly this."""
        self.outcome.judgements.append(judgement)
        counts = self.outcome.counts.most_common()
        bar.set_postfix_str(" ".join(f"{n} {verdict}" for verdict, n in counts), refresh=False)
        bar.update()
        student, assignment = judgement.student, judgement.assignment
        if not judgement.complete:
            why = next(v.message for v in judgement.verdicts if v.verdict == "infrastructure")
            self.outcome.failures.append(f"{student}, {assignment} could not be judged: {why}")
            return
        if gradebook.is_recorded(self.grader.where, judgement):
            return
        try:
            self._register(assignment)
            gradebook.record(self.grader, student, assignment)
        except release.GradebookError:
            raise
        except CourseError as error:
            self.outcome.failures.append(str(error))

    def _register(self, assignment: str) -> None:
        """Enter the assignment in the gradebook before its first score."""
        if assignment not in self._registered:
            release.register(self.grader.where, assignment)
            self._registered.add(assignment)


@contextlib.contextmanager
def alone(where: Places) -> Iterator[None]:
    """Nobody else grades this class meanwhile.

    Raises:
        CourseError: somebody does.
    """
    where.class_dir.mkdir(parents=True, exist_ok=True)
    with open(where.class_dir / "grading.lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CourseError(
                f"process {file.read() or 'unknown'} is grading this class: wait until it is done"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
