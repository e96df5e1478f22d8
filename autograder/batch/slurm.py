"""Work as a Slurm job array: submitted by submitit, followed by squeue, sent again when it is lost.

A task is a function to call on a node and a way to see, from the files it writes to a shared
directory, that it is done. A job that leaves the queue with its task undone was lost: its node
died, it was preempted, cancelled, or out of time. Slurm is told not to requeue, so that this is
the only place where work is sent again. squeue is asked and not sacct, which needs a database
that small clusters lack.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from autograder.places import CourseError

ATTEMPTS = 3
POLL_SECONDS = 3.0  # between two looks at the queue
CANCEL_SECONDS = 30.0
PATIENCE_SECONDS = 600.0  # with a Slurm that takes no jobs for the moment
COMMAND_SECONDS = 60.0


class Task(Protocol):
    """One job's work."""

    def do(self) -> None:
        """Do it, on a node."""

    def is_done(self) -> bool:
        """Whether it was done: asked where it was submitted, of the files it wrote."""

    def begin(self, attempt: int) -> None:
        """It is about to be submitted, for the first or a later time (attempt 1, 2, ...)."""


@dataclass(frozen=True)
class Request:
    """What each job asks Slurm for. `sbatch` are further options by their long names."""

    nodes: int = 1
    gpus_per_node: int = 0
    cpus: int = 1
    minutes: int = 240
    sbatch: dict[str, Any] = field(default_factory=dict)
    poll_seconds: float = field(default_factory=lambda: POLL_SECONDS)


@dataclass(frozen=True)
class Queue:
    """What squeue says of the jobs: how many wait and run, and why one that waits does."""

    waiting: int = 0
    running: int = 0
    reason: str = ""

    def __str__(self) -> str:
        waiting = f"{self.waiting} waiting" + (f" for {self.reason}" if self.reason else "")
        return f"{self.running} running" + (f", {waiting}" if self.waiting else "")


def tell() -> Callable[[Queue], None]:
    """Writes the state of the queue to the terminal, above a progress bar, when it changes."""
    said = [""]

    def show(queue: Queue) -> None:
        if str(queue) != said[0]:
            said[0] = str(queue)
            tqdm.write(f"Slurm: {queue}", file=sys.stderr)

    return show


def new_folder(parent: Path) -> Path:
    """A folder of its own for one array, named after the time and this process."""
    folder = parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir(parents=True)
    return folder


class Array:
    """Tasks that are done as the jobs of an array.

    `folder`, which the nodes must share, takes the jobs' files; its name is in the jobs' name.
    `given_up` holds what was lost ATTEMPTS times, by position: the last job's last words.

    Raises:
        CourseError: there is no Slurm here.
    """

    def __init__(self, tasks: Sequence[Task], folder: Path, request: Request):
        if shutil.which("sbatch") is None:
            raise CourseError("there is no Slurm here: sbatch is not on PATH")
        self.tasks, self.request = tasks, request
        self.given_up: dict[int, str] = {}
        self._executor = _executor(folder, request)
        self._active: dict[str, int] = {}
        self._tries = [0] * len(tasks)
        self._logs: dict[int, Path] = {}
        self._queue = Queue()
        self._refused_since: float | None = None

    def follow(self) -> Iterator[Queue]:
        """Submit, and look at the queue every few seconds until every task is done or given up.

        However this ends, and it may be closed at any time, none of the jobs is left in the queue.

        Raises:
            CourseError: Slurm refuses the jobs.
        """
        waiting: list[int] = []
        try:
            self._submit(range(len(self.tasks)))
            while self._active or waiting:
                time.sleep(self.request.poll_seconds)
                ended = self._look()
                yield self._queue
                waiting = self._submit_later(waiting + self._lost(ended))
        finally:
            cancel(list(self._active))

    def _submit_later(self, positions: list[int]) -> list[int]:
        """Submit these again. Those that Slurm does not take now, as when it is being restarted."""
        try:
            self._submit(positions)
            self._refused_since = None
            return []
        except CourseError:
            self._refused_since = self._refused_since or time.monotonic()
            if time.monotonic() - self._refused_since > PATIENCE_SECONDS:
                raise
            return positions

    def _submit(self, positions: Sequence[int]) -> None:
        """One job array for these tasks."""
        if not positions:
            return
        for position in positions:
            self.tasks[position].begin(self._tries[position] + 1)
        try:
            jobs = self._executor.map_array(_do, [self.tasks[n] for n in positions])
        except Exception as error:  # submitit wraps what sbatch said in errors of several kinds
            raise CourseError(f"Slurm refuses the jobs: {_last_line(str(error))}") from error
        for position, job in zip(positions, jobs, strict=True):
            self._active[job.job_id] = position
            self._tries[position] += 1
            self._logs[position] = job.paths.stderr

    def _look(self) -> list[int]:
        """Look at the queue; the tasks whose jobs have left it."""
        listed = queued_jobs()
        if listed is None:  # the controller is busy or restarting: nothing is known to have ended
            return []
        states = [listed[job] for job in self._active if job in listed]
        reasons = [reason for state, reason in states if state == "PENDING"]
        self._queue = Queue(len(reasons), len(states) - len(reasons), next(iter(reasons), ""))
        ended = [job for job in self._active if job not in listed]
        return [self._active.pop(job) for job in ended]

    def _lost(self, ended: Sequence[int]) -> list[int]:
        """Those of these tasks that are to be tried again; notes those that were too often."""
        undone = [position for position in ended if not self.tasks[position].is_done()]
        for position in undone:
            if self._tries[position] >= ATTEMPTS:
                self.given_up[position] = self._last_words(position)
        return [position for position in undone if position not in self.given_up]

    def _last_words(self, position: int) -> str:
        try:
            log = self._logs[position].read_text(errors="replace")
            said = [line for line in log.splitlines() if not line.startswith("srun:")]
            words = _last_line("\n".join(said))
        except OSError:
            words = ""
        sentence = f"its job was lost {self._tries[position]} times"
        return f"{sentence}; the last one's last words: {words}" if words else sentence


def queued_jobs() -> dict[str, tuple[str, str]] | None:
    """{job id: (state, reason)} of this user's jobs, array tasks by themselves; None: no answer."""
    user = getpass.getuser()
    command = ["squeue", "--noheader", "--array", "--user", user, "--format=%i|%T|%r"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return {job: (state, reason) for job, state, reason in rows}


def cancel_named(folder: Path) -> None:
    """Cancel the jobs of an array that a process which is gone has left in the queue."""
    command = ["squeue", "--noheader", "--array", f"--name={_name(folder)}", "--format=%i"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    cancel(done.stdout.split())


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs; return when they have left the queue."""
    if not jobs:
        return
    subprocess.run(["scancel", *jobs], capture_output=True, timeout=COMMAND_SECONDS, check=False)
    until = time.monotonic() + CANCEL_SECONDS
    while time.monotonic() < until:
        listed = queued_jobs()
        if listed is not None and not set(jobs) & set(listed):
            return
        time.sleep(0.5)


def _executor(folder: Path, request: Request) -> Any:
    import submitit

    executor = submitit.SlurmExecutor(folder)
    more = {name.replace("-", "_"): value for name, value in request.sbatch.items()}
    executor.update_parameters(
        job_name=_name(folder),
        nodes=request.nodes,
        ntasks_per_node=1,
        cpus_per_task=request.cpus,
        time=request.minutes,
        stderr_to_stdout=False,
        use_srun=request.nodes == 1,  # with several nodes, on the first: it starts the ranks' own
        additional_parameters={"no_requeue": True, **more},
        **({"gpus_per_node": request.gpus_per_node} if request.gpus_per_node else {}),
    )
    return executor


def _name(folder: Path) -> str:
    return f"autograder-{folder.name}"


def _do(task: Task) -> None:
    """What runs on the node."""
    task.do()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
