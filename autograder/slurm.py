"""Work as a Slurm job array: submitted by submitit, followed by squeue, sent again when it is lost.

A task is a function to call on a node and a way to see, from the files it writes to a shared
directory, that it is done. A job that leaves the queue with its task undone was lost: its node
died, it was preempted, cancelled, or out of time. Slurm is told not to requeue, so that this is
the only place where work is sent again. squeue is asked and not sacct, which needs a database
that small clusters lack.
"""

from __future__ import annotations

import getpass
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from autograder.places import CourseError

ATTEMPTS = 3
CANCEL_SECONDS = 30.0
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
    poll_seconds: float = 3.0


@dataclass(frozen=True)
class Queue:
    """What squeue says of the jobs: how many wait and run, and why one that waits does."""

    waiting: int = 0
    running: int = 0
    reason: str = ""

    def __str__(self) -> str:
        waiting = f"{self.waiting} waiting" + (f" for {self.reason}" if self.reason else "")
        return f"{self.running} running" + (f", {waiting}" if self.waiting else "")


def carry_out(
    tasks: Sequence[Task],
    folder: Path,
    request: Request,
    watch: Callable[[Queue], None] = lambda queue: None,
) -> dict[int, str]:
    """Do the tasks as jobs. Returns those given up after ATTEMPTS jobs: {position: last words}.

    `folder`, which the nodes must share, takes the jobs' files. `watch` is called at every look
    at the queue. However this call ends, none of its jobs is left in the queue.

    Raises:
        CourseError: there is no Slurm here, or it refuses the jobs.
    """
    if shutil.which("sbatch") is None:
        raise CourseError("there is no Slurm here: sbatch is not on PATH")
    jobs = _Jobs(tasks, folder, request)
    try:
        jobs.submit(range(len(tasks)))
        while jobs.active:
            time.sleep(request.poll_seconds)
            queue, ended = jobs.look()
            watch(queue)
            jobs.submit(jobs.lost(ended))
    finally:
        cancel(list(jobs.active))
    return jobs.given_up


class _Jobs:
    """The jobs of one call: which task each one does, and how often each task was tried."""

    def __init__(self, tasks: Sequence[Task], folder: Path, request: Request):
        self.tasks = tasks
        self.executor = _executor(folder, request)
        self.active: dict[str, int] = {}
        self.tries = [0] * len(tasks)
        self.logs: dict[int, Path] = {}
        self.given_up: dict[int, str] = {}
        self.queue = Queue()

    def submit(self, positions: Sequence[int]) -> None:
        """One job array for these tasks."""
        if not positions:
            return
        for position in positions:
            self.tries[position] += 1
            self.tasks[position].begin(self.tries[position])
        try:
            jobs = self.executor.map_array(_do, [self.tasks[n] for n in positions])
        except Exception as error:  # submitit wraps what sbatch said in errors of several kinds
            raise CourseError(f"Slurm refuses the jobs: {_last_line(str(error))}") from error
        for position, job in zip(positions, jobs, strict=True):
            self.active[job.job_id] = position
            self.logs[position] = job.paths.stderr

    def look(self) -> tuple[Queue, list[int]]:
        """The queue, and the tasks whose jobs have left it."""
        listed = queued_jobs()
        if listed is None:  # the controller is busy or restarting: nothing is known to have ended
            return self.queue, []
        states = [listed[job] for job in self.active if job in listed]
        reasons = [reason for state, reason in states if state == "PENDING"]
        self.queue = Queue(len(reasons), len(states) - len(reasons), next(iter(reasons), ""))
        ended = [job for job in self.active if job not in listed]
        return self.queue, [self.active.pop(job) for job in ended]

    def lost(self, ended: Sequence[int]) -> list[int]:
        """Those of these tasks that are to be tried again; notes those that were too often."""
        undone = [position for position in ended if not self.tasks[position].is_done()]
        for position in undone:
            if self.tries[position] >= ATTEMPTS:
                self.given_up[position] = self._last_words(position)
        return [position for position in undone if position not in self.given_up]

    def _last_words(self, position: int) -> str:
        try:
            words = _last_line(self.logs[position].read_text(errors="replace"))
        except OSError:
            words = ""
        sentence = f"its job was lost {self.tries[position]} times"
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


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs; return when they have left the queue."""
    if not jobs:
        return
    subprocess.run(["scancel", *jobs], capture_output=True, timeout=COMMAND_SECONDS, check=False)
    until = time.monotonic() + CANCEL_SECONDS
    while time.monotonic() < until and set(jobs) & set(queued_jobs() or jobs):
        time.sleep(0.5)


def _executor(folder: Path, request: Request) -> Any:
    import submitit

    executor = submitit.SlurmExecutor(folder)
    more = {name.replace("-", "_"): value for name, value in request.sbatch.items()}
    executor.update_parameters(
        job_name="autograder",
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


def _do(task: Task) -> None:
    """What runs on the node."""
    task.do()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
