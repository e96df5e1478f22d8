"""Grade a class: every submission through the engine, with a progress bar; safe to interrupt.

Others judge; the thread that asked for it alone writes. A judgement is on the disk, in the journal,
before it goes to nbgrader's gradebook, so that whatever ends this process, the next run does what
is missing and nothing twice.
"""

import contextlib
import fcntl
import shutil
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from autograder.batch import queue, slurm
from autograder.batch.grade_work import GradeWork, HandIn
from autograder.batch.queue import Queue
from autograder.collect.door import strays
from autograder.database import make_gradebook
from autograder.grade.engine import Grader, submissions
from autograder.grade.journal import Judgement
from autograder.grade.marks import in_the_way
from autograder.places import CourseError, GradebookError, Places
from autograder.release.rules import check
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.words import counted

SHARD = 25  # submissions in a job, unless told otherwise: the start of its kernels is then 5 %


@dataclass
class Outcome:
    """What one run of grading did; `new` counts what was not found in the journal.

    `failures` say what is without a mark.
    """

    judgements: list[Judgement] = field(default_factory=list)
    new: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GradeOptions:
    """How to grade; see `autograder grade --help`.

    `jobs` submissions are judged at a time, here; unless `queue` is given, and does it elsewhere.
    `gpus`: what devices.chosen found out.
    """

    again: bool = False
    sandboxed: bool = True
    seed: int | None = None
    limit: float | None = None
    progress: bool = True
    jobs: int = 1
    queue: Queue | None = None
    gpus: Gpus = NO_GPUS

    @property
    def engine(self) -> dict[str, Any]:
        """What decides a verdict: the arguments that every Grader of this run is made with."""
        return {name: getattr(self, name) for name in ("sandboxed", "seed", "limit", "gpus")}


def grade(
    where: Places,
    assignments: list[str],
    students: Sequence[str] = (),
    options: GradeOptions = GradeOptions(),
) -> Outcome:
    """Judge what is new or changed, and bring the gradebook up to date.

    Raises:
        CourseError: there is nothing to grade, no sandbox, a released notebook is missing, the
            gradebook cannot be written, or another process grades this class.
        OSError: the disk is full.
    """
    outcome = Outcome()
    with Grader(where, **options.engine) as grader, alone(where):
        if not students:
            outcome.failures = strays(where)
        make_gradebook(where)
        todo = submissions(where, assignments, list(students))
        for assignment in {assignment for _, assignment in todo}:
            grader.released(assignment)
            check(where.source(assignment))
        _Run(grader, options, outcome).through(todo)
    outcome.judgements.sort(key=lambda j: (j.assignment, j.student))
    return outcome


@contextlib.contextmanager
def alone(where: Places) -> Iterator[None]:
    """Nobody else grades this class meanwhile.

    Raises:
        CourseError: somebody does.
    """
    where.class_dir.mkdir(parents=True, exist_ok=True)
    with open(where.class_dir / "grading.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError("another process is grading this class: wait for it") from None
        yield


def judgements_on(
    grader: Grader, hand_ins: list[HandIn], options: GradeOptions
) -> Generator[tuple[HandIn, Judgement | None, str]]:
    """A judgement on each of these, as they come, written nowhere; or why there is none."""
    do = options.queue or queue.here(options.jobs)
    work = GradeWork(grader.where, options.engine, grader.means)
    with contextlib.closing(do(work, hand_ins)) as reports:
        for report in reports:
            line, hand_in = report.result, hand_ins[report.item]
            yield hand_in, Judgement.from_line(line) if line else None, report.why


def summary(outcome: Outcome) -> Iterator[str]:
    """The last table of a run: verdicts, and what lies in the way of a mark."""
    judgements = outcome.judgements
    counts = Counter(v.verdict for judgement in judgements for v in judgement.verdicts)
    verdicts = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    yield f"{counted(len(judgements), 'submission')}, {outcome.new} of them judged now"
    yield f"  tasks: {verdicts}"
    for kind, assignment, students, why in in_the_way(judgements):
        yield f"  {len(students)} {kind}, {assignment}: {', '.join(students)}. {why}".rstrip()


class _Run:
    """One run over a class: what is known is recorded first, the rest as it is judged."""

    def __init__(self, grader: Grader, options: GradeOptions, outcome: Outcome):
        self.grader, self.options, self.outcome = grader, options, outcome
        self._refused: dict[str, str] = {}  # by assignment: "", or why the gradebook has it not

    def through(self, todo: list[HandIn]) -> None:
        """Every submission, to its end."""
        folders = sorted((self.grader.where.class_dir / "slurm").glob("*-*"))
        left = _left_by_jobs(folders)
        known = {} if self.options.again else self._known(todo, left)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        with queue.progress(len(todo), "submission", self.options.progress) as bar:
            for old in known.values():
                self._take(old, bar)
            bar.reset()  # what was known says nothing of the speed
            bar.n = bar.initial = len(known)
            missing = [hand_in for hand_in in todo if hand_in not in known]
            with contextlib.closing(judgements_on(self.grader, missing, self.options)) as news:
                for (student, assignment), judgement, why in news:
                    if judgement:
                        self.grader.journal.append(judgement)
                        self.outcome.new += 1
                        self._take(judgement, bar)
                    else:
                        sentence = f"{student}, {assignment} could not be judged: {why}"
                        self.outcome.failures.append(sentence)
                        bar.update()

    def _known(self, todo: list[HandIn], left: dict[str, Judgement]) -> dict[HandIn, Judgement]:
        """The judgements on exactly these submissions that an earlier run, or its jobs, made."""
        journal, found = self.grader.journal, {}
        for hand_in in todo:
            key = self.grader.take_in(*hand_in).key
            judgement = journal.find(key) or left.get(key)
            if judgement is not None:
                found[hand_in] = journal.count(judgement)
        return found

    def _take(self, judgement: Judgement, bar: tqdm) -> None:
        """Record a judgement, if the gradebook does not hold exactly this."""
        self.outcome.judgements.append(judgement)
        bar.update()
        if not judgement.is_recorded(self.grader.where) and self._enters(judgement.assignment):
            from autograder.grade import gradebook

            try:
                gradebook.record(self.grader, judgement.student, judgement.assignment)
            except GradebookError:
                raise
            except CourseError as error:
                self.outcome.failures.append(str(error))

    def _enters(self, assignment: str) -> bool:
        """Whether the gradebook holds this assignment, which is entered before its first score."""
        if assignment not in self._refused:
            from autograder.release.generate import register

            try:
                register(self.grader.where, assignment)
                self._refused[assignment] = ""
            except GradebookError:
                raise
            except CourseError as error:
                self._refused[assignment] = str(error)
                self.outcome.failures.append(str(error))
        return not self._refused[assignment]


def _left_by_jobs(folders: list[Path]) -> dict[str, Judgement]:
    """By key: what the jobs of runs that were killed judged. Those that still run are ended."""
    found = {}
    for folder in folders:
        slurm.cancel(folder)
        for record in folder.glob("*.jsonl"):
            lines = [report.result for report in slurm.reports_in(record)[0] if report.result]
            found.update((one.key, one) for one in map(Judgement.from_line, lines))
    return found
