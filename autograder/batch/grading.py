"""Grade a class: every submission through the engine, with a progress bar; safe to interrupt.

Other processes judge; this one alone writes. A judgement is on the disk, in the journal, before it
goes to nbgrader's gradebook, so that whatever ends this process, the next run does what is missing
and nothing twice.
"""

import contextlib
import fcntl
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from autograder.batch import cluster, queue, slurm
from autograder.batch.judging import Judging, Place
from autograder.batch.queue import Queue
from autograder.collect.door import settle
from autograder.grade import gradebook
from autograder.grade.engine import Grader, submissions
from autograder.grade.journal import Judgement
from autograder.grade.marks import in_the_way
from autograder.places import CourseError, Places
from autograder.release import changes
from autograder.release import generate as release
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.words import counted

SHARD = 25  # submissions in a job, unless told otherwise: the start of its workers is then 5 %


@dataclass
class Outcome:
    """What one run of grading did; `new` counts what was not found in the journal.

    `failures` say what is without a mark, `notes` what else the instructor should know.
    """

    judgements: list[Judgement] = field(default_factory=list)
    new: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Verdicts, by kind."""
        return Counter(v.verdict for j in self.judgements for v in j.verdicts)


def by_verdict(outcome: Outcome) -> str:
    """How many questions had which verdict."""
    return ", ".join(f"{n} {verdict}" for verdict, n in outcome.counts.most_common())


@dataclass(frozen=True)
class Options:
    """How to grade; see `autograder grade --help`.

    `jobs` submissions are judged at a time, here; unless `queue` is given, and does it elsewhere.
    `gpus`: what devices.chosen found out. `changed_cells`: take over graded cells that were added
    or removed after hand-ins were recorded.
    """

    again: bool = False
    sandboxed: bool = True
    seed: int | None = None
    limit: float | None = None
    progress: bool = True
    jobs: int = 1
    queue: Queue | None = None
    gpus: Gpus = NO_GPUS
    changed_cells: bool = False
    told: Callable[[Outcome], str] = by_verdict  # what the bar says of the run so far

    @property
    def engine(self) -> dict[str, Any]:
        """What decides a verdict: the arguments that every Grader of this run is made with."""
        return {name: getattr(self, name) for name in ("sandboxed", "seed", "limit", "gpus")}


def grade(
    where: Places, assignments: list[str], students: list[str] = (), options: Options = Options()
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
            renamed, strays = settle(where)
            outcome.notes += renamed
            outcome.failures += strays
        todo = submissions(where, assignments, list(students))
        for assignment in dict.fromkeys(assignment for _, assignment in todo):
            grader.released(assignment)
            release.check(where.source(assignment))
            try:
                if options.changed_cells and (kept := changes.take_over(where, assignment)):
                    what = f"the gradebook has the new cells; as it was: {kept}"
                    outcome.notes.append(f"{assignment}: {what}")
                changes.refuse(where, assignment)
            except release.GradebookError:
                raise
            except CourseError as why:
                outcome.failures.append(str(why))
                todo = [place for place in todo if place[1] != assignment]
        if not todo:
            raise CourseError("\n".join(outcome.failures))
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


def judged(grader: Grader, places: list[Place], options: Options) -> Iterator[Judgement]:
    """A judgement on each of these submissions, as they come, written nowhere."""
    few = options.jobs == 1 or len(places) == 1
    ask = options.queue or (queue.alone if few else queue.here(options.jobs))
    work = Judging(grader.where, options.engine, grader.means)
    with contextlib.closing(ask(work, places)) as reports:
        for report in reports:
            if report.kind == queue.DONE:
                yield Judgement.from_line(report.value)
            else:
                yield grader.unjudged(grader.take_in(*places[report.item]), report.value)


def summary(outcome: Outcome) -> Iterator[str]:
    """The last table of a run: verdicts, and what lies in the way of a mark."""
    judged = outcome.judgements
    handed_in = counted(len(judged), "submission")
    yield f"{handed_in}, {outcome.new} of them judged now: {by_verdict(outcome)}"
    for kind, assignment, students, why in in_the_way(one for one in judged if one.complete):
        yield f"  {len(students)} {kind}, {assignment}: {', '.join(students)}. {why}".rstrip()
    yield from (f"  {note}" for note in outcome.notes)


class _Run:
    """One run over a class: what is known is recorded first, the rest as it is judged."""

    def __init__(self, grader: Grader, options: Options, outcome: Outcome):
        self.grader, self.options, self.outcome = grader, options, outcome
        self._registered: set[str] = set()

    def through(self, todo: list[Place]) -> None:
        """Every submission, to its end."""
        folders = sorted((self.grader.where.class_dir / "slurm").glob("*-*"))
        left = _left_by_jobs(folders)
        known = {} if self.options.again else self._known(todo, left)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        with queue.progress(len(todo), "submission", self.options.progress) as bar:
            for judgement in known.values():
                self._take(judgement, bar)
            bar.reset()  # what was known says nothing of the speed
            bar.n = bar.initial = len(known)
            missing = [place for place in todo if place not in known]
            with contextlib.closing(judged(self.grader, missing, self.options)) as news:
                for judgement in news:
                    self._write(judgement, bar)

    def _known(self, todo: list[Place], left: dict[str, Judgement]) -> dict[Place, Judgement]:
        """The judgements on exactly these submissions that an earlier run, or its jobs, made."""
        journal, found = self.grader.journal, {}
        for place in todo:
            key = self.grader.take_in(*place).key
            judgement = journal.find(key) or left.get(key)
            if judgement is not None and journal.last(*place) != judgement:
                journal.append(judgement)  # handed in again as it was before: this one counts now
            if judgement is not None:
                found[place] = judgement
        return found

    def _write(self, judgement: Judgement, bar: tqdm) -> None:
        self.grader.journal.append(judgement)
        self.outcome.new += 1
        self._take(judgement, bar)

    def _take(self, judgement: Judgement, bar: tqdm) -> None:
        """Record a judgement, if the gradebook does not hold exactly this."""
        self.outcome.judgements.append(judgement)
        bar.set_postfix_str(self.options.told(self.outcome), refresh=False)
        bar.update()
        student, assignment = judgement.student, judgement.assignment
        if not judgement.complete:
            why = judgement.why_incomplete
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


def _left_by_jobs(folders: list[Path]) -> dict[str, Judgement]:
    """By key: what the jobs of runs that were killed judged. Those that still run are cancelled."""
    found = {}
    for folder in folders:
        cluster.cancel_left_by(folder)
        for record in folder.glob("*.jsonl"):
            done = [r.value for r in slurm.reports_in(record)[0] if r.kind == queue.DONE]
            judgements = map(Judgement.from_line, done)
            found.update((one.key, one) for one in judgements if one.complete)
    return found
