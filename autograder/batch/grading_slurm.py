"""A class graded on Slurm: shards of its submissions, each judged by a job with warm workers.

A job writes into a journal of its own, in a folder under the class directory that the nodes share.
The process that submitted the jobs reads those journals as they grow, and it alone writes to the
class's journal and gradebook. What a lost job had judged is kept, and another job does the rest.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.batch.slurm import Array, Queue, Request, cancel_named, new_folder
from autograder.batch.workers import Place, judge_shard
from autograder.grade.engine import Grader
from autograder.grade.journal import Judgement, environment
from autograder.places import CourseError, Places

SHARD = 25  # submissions in a job, unless told otherwise: the start of its workers is then 5 %
MOST_SHARDS = 64


@dataclass
class ShardTask:
    """Some of the submissions: what a job judges, and what has come of it."""

    where: Places
    todo: list[Place]
    folder: Path
    engine: dict[str, Any]
    workers: int
    surroundings: str
    attempt: int = 0
    judged: dict[Place, Judgement] = field(default_factory=dict)
    _read_to: int = 0

    @property
    def journal(self) -> Path:
        """Where this attempt's job writes."""
        return self.folder / f"{self.attempt}.journal"

    @property
    def marker(self) -> Path:
        """Written when this attempt's job has judged all that it can."""
        return self.folder / f"{self.attempt}.done"

    def begin(self, attempt: int) -> None:
        """Keep what is missing. The files are made here: one that is there is never cached as
        missing by a network file system."""
        self.read()
        self.todo = [place for place in self.todo if place not in self.judged]
        self.attempt, self._read_to = attempt, 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self.journal.touch(mode=0o600)
        self.marker.touch()

    def do(self) -> None:
        """Judge the shard.

        Raises:
            CourseError: this node would judge by other means than the submitting process says.
        """
        here = surroundings(self.where, self.engine)
        if here != self.surroundings:
            raise CourseError(
                f"this node has {here}; the process that submitted the job has {self.surroundings}:"
                " use one environment and one checkout on a disk they share, and one sandbox"
            )
        judge_shard(self.where, self.todo, self.journal, self.engine, self.workers)
        self.marker.write_text("done")

    def is_done(self) -> bool:
        """Whether nothing is left that another job could do."""
        self.read()
        return bool(self.marker.read_text()) or all(p in self.judged for p in self.todo)

    def read(self) -> list[Judgement]:
        """The judgements that have come since the last look; of two on one submission the first."""
        if not self.journal.exists():
            return []
        new, self._read_to = judgements(self.journal, self._read_to)
        first = [j for j in new if (j.student, j.assignment) not in self.judged]
        self.judged.update({(j.student, j.assignment): j for j in first})
        return first

    def unjudged(self, why: str) -> list[Judgement]:
        """For what no job has judged, judgements that say so; they score nothing."""
        missing = [place for place in self.todo if place not in self.judged]
        if not missing:
            return []
        with Grader(self.where, **self.engine) as grader:
            return [grader.unjudged(grader.take_in(*place), why) for place in missing]


def judge_on_slurm(
    request: Request,
    shards: int | None = None,
    again: bool = False,
    show: Callable[[Queue], None] = lambda queue: None,
) -> Callable[..., Iterator[Judgement]]:
    """`autograder.batch.workers.judge_all`, done by the jobs of an array.

    `shards` jobs, or one for every SHARD submissions. Unless `again`, what the jobs of a run that
    was killed have judged is not judged again. `show` is called at every look at the queue.
    """

    def judge_all(
        where: Places, todo: Sequence[Place], engine: dict[str, Any], jobs: int
    ) -> Iterator[Judgement]:
        parent = where.class_dir / "slurm"
        before = sorted(parent.glob("*-*"))
        found = recovered(before, where, [] if again else todo, engine)
        yield from found.values()
        for folder in before:
            shutil.rmtree(folder, ignore_errors=True)
        rest = [place for place in todo if place not in found]
        if rest:
            yield from _in_shards(where, rest, engine, jobs)

    def _in_shards(
        where: Places, todo: list[Place], engine: dict[str, Any], jobs: int
    ) -> Iterator[Judgement]:
        folder = new_folder(where.class_dir / "slurm")
        number = min(shards or min(-(-len(todo) // SHARD), MOST_SHARDS), len(todo))
        means = surroundings(where, engine)
        tasks = [
            ShardTask(where, todo[n::number], folder / str(n), engine, jobs, means)
            for n in range(number)
        ]
        array = Array(tasks, folder, request)
        yield from _follow(array, show)
        if not array.given_up:
            shutil.rmtree(folder, ignore_errors=True)  # else it is kept, with the jobs' logs

    return judge_all


def _follow(array: Array, show: Callable[[Queue], None]) -> Iterator[Judgement]:
    """The judgements of all shards, as they come."""
    with contextlib.closing(array.follow()) as looks:
        for queue in looks:
            show(queue)
            for task in array.tasks:
                yield from task.read()
    for position, task in enumerate(array.tasks):
        yield from task.read()
        yield from task.unjudged(array.given_up.get(position, "its job left it out"))


def recovered(
    folders: Sequence[Path], where: Places, todo: Sequence[Place], engine: dict[str, Any]
) -> dict[Place, Judgement]:
    """What the jobs of earlier runs judged that nobody read, if it is on the same submissions.

    Those runs were killed, or gave up. Those of their jobs that still run are cancelled first.
    """
    found: dict[Place, Judgement] = {}
    wanted = set(todo)
    for folder in folders:
        cancel_named(folder)
        for journal in folder.glob("*/*.journal"):
            for judgement in judgements(journal)[0]:
                place = (judgement.student, judgement.assignment)
                if place in wanted and judgement.complete:
                    found[place] = judgement
    if found:
        with Grader(where, **engine) as grader:
            keys = {place: grader.take_in(*place).key for place in found}
        found = {place: j for place, j in found.items() if j.key == keys[place]}
    return found


def surroundings(where: Places, engine: dict[str, Any]) -> str:
    """All but the submission and the tests that a judgement's key is made from."""
    with Grader(where, **engine) as grader:
        return f"{environment()}, sandbox {grader.level}, {grader.gpus}"


def judgements(path: Path, start: int = 0) -> tuple[list[Judgement], int]:
    """The judgements on the whole lines of a journal from byte `start` on, and where they end."""
    with open(path, "rb") as file:
        file.seek(start)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    found = []
    for line in whole.splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):  # cut short by a crash
            found.append(Judgement.from_line(line))
    return found, start + len(whole)
