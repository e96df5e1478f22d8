"""The queue as a Slurm job array: submitted by submitit, followed by squeue.

Each job does a shard of the items, by `queue.here`, and appends its reports to a record, in a
folder that the nodes share; the process that submitted it reads the records as they grow. A job
that leaves the queue with items to do was lost: its node died, it was preempted, cancelled, or out
of time. What it did counts, and another job does the rest, as queue.py has it for any process.
Slurm is told not to requeue, so that work is sent again in one place.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from autograder.batch.cluster import Request, cancel, executor, queued_jobs
from autograder.batch.queue import LOST, STEP, TRIES, Queue, Report, Work, here
from autograder.places import CourseError

MOST_JOBS = 64
POLL_SECONDS = 3.0  # between two looks at the queue
PATIENCE_SECONDS = 600.0  # with a Slurm that takes no jobs for the moment


@dataclass
class Shard:
    """Some items, by number, and the job that does them: `tries` counts its jobs, this included."""

    number: int
    work: Work
    items: dict[int, Any]
    folder: Path
    processes: int
    tries: int = 1
    job: Any = None
    read_to: int = 0

    @property
    def record(self) -> Path:
        """What the job reports, a line each."""
        return self.folder / f"{self.number}-{self.tries}.jsonl"

    def do(self) -> None:
        """Do the items: this is what runs on a node."""
        numbers, items = list(self.items), list(self.items.values())
        with open(self.record, "ab") as file:
            for report in here(self.processes)(self.work, items):
                known = Report(numbers[report.item], report.kind, report.value)
                file.write(json.dumps(astuple(known)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def news(self) -> list[Report]:
        """What the job has reported since the last look."""
        found, self.read_to = reports_in(self.record, self.read_to)
        return found

    def last_words(self) -> str:
        """The last line of the job's errors."""
        with contextlib.suppress(OSError):
            said = self.job.paths.stderr.read_text(errors="replace").splitlines()
            lines = [line.strip() for line in said if not line.startswith("srun:")]
            return next((line for line in reversed(lines) if line), "")
        return ""


def on_slurm(request: Request, parent: Path, size: int = 1, processes: int = 1) -> Queue:
    """A queue that does the items in a job for every `size` items, each by so many `processes`.

    A folder in `parent` takes the jobs' files; it stays if something was lost. However this ends,
    and it may be closed at any time, none of the jobs is left in the queue.
    """

    def reports(work: Work, items: Sequence[Any]) -> Iterator[Report]:
        if not items:
            return
        number = min(-(-len(items) // size), MOST_JOBS)
        folder = parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        folder.mkdir(parents=True)
        numbered = list(enumerate(items))
        parts = [
            Shard(first, work, dict(numbered[first::number]), folder, processes)
            for first in range(number)
        ]
        array, lost = _Array(folder, request), 0
        with contextlib.closing(array.follow(parts)) as found:
            for report in found:
                lost += report.kind == LOST
                yield report
        if not lost:
            shutil.rmtree(folder, ignore_errors=True)

    return reports


class _Array:
    """Shards that are done as the jobs of an array.

    Raises:
        CourseError: there is no Slurm here.
    """

    def __init__(self, folder: Path, request: Request):
        if shutil.which("sbatch") is None:
            raise CourseError("there is no Slurm here: sbatch is not on PATH")
        self.executor = executor(folder, request)
        self.active: list[Shard] = []
        self.waiting: list[Shard] = []
        self.said = ""
        self.refused_since: float | None = None

    def follow(self, shards: list[Shard]) -> Iterator[Report]:
        """Submit, and look every few seconds, until every item is done or lost.

        Raises:
            CourseError: Slurm refuses the jobs.
        """
        try:
            self._submit(shards)
            while self.active or self.waiting:
                time.sleep(POLL_SECONDS)
                listed = queued_jobs()  # before the records: a job that left it has written all
                for shard in list(self.active):
                    yield from self._news(shard)
                    if listed is not None and shard.job.job_id not in listed:
                        self.active.remove(shard)
                        yield from self._again(shard)
                self._tell(listed or {})
                self._submit_waiting()
        finally:
            cancel([shard.job.job_id for shard in self.active])

    def _news(self, shard: Shard) -> Iterator[Report]:
        """What is new of a shard's items: each has one result."""
        for report in shard.news():
            if report.item in shard.items:
                if report.kind != STEP:
                    del shard.items[report.item]
                yield report

    def _again(self, shard: Shard) -> Iterator[Report]:
        """What a job left undone is for another one, or lost."""
        if shard.items and shard.tries < TRIES:
            again = replace(shard, tries=shard.tries + 1, job=None, read_to=0)
            self.waiting.append(again)
        elif shard.items:
            words = shard.last_words()
            why = f"its job was lost {TRIES} times"
            why += f"; the last one's last words: {words}" if words else ""
            yield from (Report(number, LOST, why) for number in shard.items)

    def _submit(self, shards: list[Shard]) -> None:
        """One job array for these. The records are made here: one that is there is never cached as
        missing by a network file system."""
        for shard in shards:
            shard.record.touch(mode=0o600)
        try:
            jobs = self.executor.map_array(Shard.do, shards)
        except Exception as error:  # submitit wraps what sbatch said in errors of several kinds
            said = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise CourseError(f"Slurm refuses the jobs: {said[-1] if said else error!r}") from error
        for shard, job in zip(shards, jobs, strict=True):
            shard.job = job
        self.active += shards

    def _submit_waiting(self) -> None:
        """Submit what was lost; later, where Slurm takes no jobs now, as when it is restarted."""
        if not self.waiting:
            return
        try:
            self._submit(self.waiting)
            self.waiting, self.refused_since = [], None
        except CourseError:
            self.refused_since = self.refused_since or time.monotonic()
            if time.monotonic() - self.refused_since > PATIENCE_SECONDS:
                raise

    def _tell(self, listed: dict[str, tuple[str, str]]) -> None:
        """Write the state of the jobs above the progress bar, when it changes."""
        states = [listed[s.job.job_id] for s in self.active if s.job.job_id in listed]
        reasons = [reason for state, reason in states if state == "PENDING"]
        said = f"Slurm: {len(states) - len(reasons)} running"
        if reasons:
            said += f", {len(reasons)} waiting for {reasons[0]}"
        if states and said != self.said:
            self.said = said
            tqdm.write(said, file=sys.stderr)


def reports_in(record: Path, start: int = 0) -> tuple[list[Report], int]:
    """The reports on the whole lines of a record from byte `start` on, and where they end."""
    with open(record, "rb") as file:
        file.seek(start)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return [Report(*json.loads(line)) for line in whole.splitlines()], start + len(whole)
