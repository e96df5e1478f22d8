"""The queue as a Slurm job array: submitted by submitit, followed by squeue.

Each job does a shard of the items, by `queue.here`, and appends its reports to a record, in a
folder that the nodes share; the process that submitted it reads the records as they grow. A job
that loses its node, or is preempted, is Slurm's to begin again: it goes on from its record. One
that leaves the queue with items to do is lost, and the next run of the same command does the rest.

squeue and not sacct, which needs a database that small clusters lack.
"""

import contextlib
import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from autograder.batch.queue import Queue, Report, Work, here
from autograder.places import CourseError

MOST_JOBS = 64
POLL_SECONDS = 3.0  # between two looks at the queue
COMMAND_SECONDS = 60.0
_ENDS = {  # by what Slurm calls the state of a job that left the queue early
    "CANCELLED": "its job was cancelled",
    "TIMEOUT": "its job ran out of time: --sbatch time=MINUTES gives more",
    "NODE_FAIL": "the node of its job failed",
    "OUT_OF_MEMORY": "its job ran out of memory: --sbatch mem=16G gives more",
    "PREEMPTED": "its job was preempted",
}


@dataclass(frozen=True)
class Request:
    """What each job asks Slurm for: GPUs on each node; further options by their long names."""

    nodes: int = 1
    gpus: int = 0
    sbatch: dict[str, Any] = field(default_factory=dict)


@dataclass
class Shard:
    """Some items, by number, and the job that does them, `processes` at a time."""

    number: int
    work: Work
    items: dict[int, Any]
    folder: Path
    processes: int
    job: Any = None
    read_to: int = 0

    @property
    def record(self) -> Path:
        """What the job reports, a line each."""
        return self.folder / f"{self.number}.jsonl"

    def do(self) -> None:
        """Do the items, but for those done before this job lost its node: this runs on a node.

        When Slurm ends the job it first signals all of it, kernels too: what would be reported of
        them now is not so.
        """
        signal.signal(signal.SIGTERM, _told_to_end)
        done = {report.item for report in reports_in(self.record)[0]}
        numbers = [number for number in self.items if number not in done]
        with open(self.record, "ab") as file:
            file.write(b"\n")  # ends a line that is torn
            items = [self.items[number] for number in numbers]
            for report in here(self.processes)(self.work, items):
                known = replace(report, item=numbers[report.item])
                file.write(json.dumps(astuple(known)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def news(self) -> Generator[Report]:
        """What the job has reported since the last look: each item has one result."""
        found, self.read_to = reports_in(self.record, self.read_to)
        for report in found:
            if self.items.pop(report.item, None) is not None:
                yield report

    def lost(self) -> Generator[Report]:
        """What is to be said of the items that a job left undone, with its last words."""
        why = _ENDS.get(_state(self.job.job_id))
        if why is None:
            said = self.job.stderr() or ""
            lines = [line.strip() for line in said.splitlines() if not line.startswith("srun:")]
            words = next((f" ({line})" for line in reversed(lines) if line), "")
            why = f"its job ended before it was done{words}"
        yield from (Report(n, None, f"{why}; the same command does the rest") for n in self.items)


def on_slurm(request: Request, parent: Path, size: int = 1, processes: int = 4) -> Queue:
    """A queue that does the items in a job for every `size` items, each by so many `processes`.

    A folder in `parent` takes the jobs' files; it stays if something was lost. However this ends,
    and it may be closed at any time, none of the jobs is left in the queue.

    Raises:
        CourseError: there is no Slurm here, or it refuses the jobs.
    """

    def reports(work: Work, items: Sequence[Any]) -> Generator[Report]:
        if not items:
            return
        if shutil.which("sbatch") is None:
            raise CourseError("there is no Slurm here: sbatch is not on PATH")
        number = min(-(-len(items) // size), MOST_JOBS)
        folder = parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        folder.mkdir(parents=True)
        numbered = list(enumerate(items))
        parts = [
            Shard(first, work, dict(numbered[first::number]), folder, processes)
            for first in range(number)
        ]
        try:
            _submit(parts, folder, request)
            yield from _follow(parts)
        finally:
            cancel(folder)
            if not any(shard.items for shard in parts if shard.job):
                shutil.rmtree(folder, ignore_errors=True)
                with contextlib.suppress(OSError):  # another run's files are there
                    parent.rmdir()

    return reports


def cancel(folder: Path) -> None:
    """End the jobs whose files lie in this folder, if any are left."""
    command = ["scancel", "--quiet", f"--name={_name(folder)}"]
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS, check=False)


def reports_in(record: Path, start: int = 0) -> tuple[list[Report], int]:
    """The reports on the whole lines of a record from byte `start` on, and where they end."""
    with open(record, "rb") as file:
        file.seek(start)
        data = file.read()
    whole, found = data[: data.rfind(b"\n") + 1], []
    for line in whole.splitlines():
        with contextlib.suppress(ValueError):  # torn as its node was lost
            found.append(Report(*json.loads(line)))
    return found, start + len(whole)


def _follow(shards: list[Shard]) -> Generator[Report]:
    """Look every few seconds, until every item is done or lost."""
    active = list(shards)
    while active:
        time.sleep(POLL_SECONDS)
        listed = _queued()  # before the records: a job that left it has written all
        for shard in list(active):
            yield from shard.news()
            if not shard.items:
                active.remove(shard)
            elif listed is not None and shard.job.job_id not in listed:
                active.remove(shard)
                yield from shard.lost()


def _queued() -> set[str] | None:
    """This user's jobs, array tasks by themselves; None where Slurm does not answer now."""
    command = ["squeue", "--noheader", "--array", "--user", getpass.getuser(), "--format=%i"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None  # the controller is busy or restarting: nothing is known to have ended
    return set(done.stdout.decode().split())


def _state(job: str) -> str:
    """What Slurm says of a job that is over, as long as it remembers: some minutes."""
    command = ["scontrol", "--oneliner", "show", "job", job]
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"JobState=(\w+)", done.stdout.decode(errors="replace"))
    return found[1] if found else ""


def _told_to_end(*_: Any) -> None:
    raise SystemExit("Slurm told this job to end")


def _submit(shards: list[Shard], folder: Path, request: Request) -> None:
    """One job array for these. The records are made here: one that is there is never cached as
    missing by a network file system."""
    import submitit

    executor = submitit.SlurmExecutor(folder)
    executor.update_parameters(
        job_name=_name(folder),
        nodes=request.nodes,
        ntasks_per_node=1,
        cpus_per_task=shards[0].processes,
        time=240,
        stderr_to_stdout=False,
        use_srun=request.nodes == 1,  # with several nodes, on the first: it starts the ranks' own
        additional_parameters={
            "requeue": True,
            **{name.replace("-", "_"): value for name, value in request.sbatch.items()},
        },
        **({"gpus_per_node": request.gpus} if request.gpus else {}),
    )
    for shard in shards:
        shard.record.touch(mode=0o600)
    try:
        jobs = executor.map_array(Shard.do, shards)
    except Exception as error:  # submitit wraps what sbatch said in errors of several kinds
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = said[-1] if said else repr(error)
        raise CourseError(f"Slurm refuses the jobs: {why} (does sinfo answer here?)") from error
    for shard, job in zip(shards, jobs, strict=True):
        shard.job = job


def _name(folder: Path) -> str:
    return f"autograder-{folder.name}"
