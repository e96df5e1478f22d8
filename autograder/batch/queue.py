"""One queue for all work: items, done by warm processes here, or on the nodes of a cluster.

A kind of work is plain data and says how one item is done: `judging.Judging` a submission,
`running.Running` a notebook. `here` does items side by side on this machine and `slurm.on_slurm`
as a job array, each of whose jobs is `here` again; both yield the same reports.

An item whose process ends without a result is given to another, TRIES times in all, and is then
reported as lost. When the process that asked is gone, however it went, so is all that it started.
"""

import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from multiprocessing.connection import wait
from typing import Any, Protocol

import cloudpickle
from tqdm import tqdm

from autograder.places import CourseError
from byhand.words import counted

TRIES = 3
END_SECONDS = 20.0  # that a process has to end its kernel and its sandbox
STEP, DONE, LOST, REFUSED = "step", "done", "lost", "refused"
_PR_SET_PDEATHSIG = 1


class Work(Protocol):
    """A kind of work. Items, steps and results are plain data, as JSON has it."""

    def prepare(self) -> None:
        """Load what all processes need, once, before they are forked.

        Raises:
            CourseError: it cannot be done here.
        """

    def worker(self) -> AbstractContextManager[Callable[[Any, Callable[[Any], None]], Any]]:
        """Be a process that works: `do(item, say)` gives an item's result, and says its steps."""


@dataclass(frozen=True)
class Report:
    """What is new of an item, by its number: a step, its result, or why it has none."""

    item: int
    kind: str
    value: Any


Queue = Callable[[Work, Sequence[Any]], Iterator[Report]]


def cores() -> int:
    """CPUs that this process may use: as many processes as pay."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def alone(work: Work, items: Sequence[Any]) -> Iterator[Report]:
    """The items one after the other, in this process: for one or two there is nothing to gain."""
    with work.worker() as do:
        for number, item in enumerate(items):
            yield Report(number, DONE, do(item, lambda step: None))


def here(jobs: int) -> Queue:
    """A queue that does `jobs` items at a time, in processes of this machine.

    Closing the iterator ends them, with their kernels and sandboxes.

    Raises:
        CourseError: the work cannot be done here.
    """

    def reports(work: Work, items: Sequence[Any]) -> Iterator[Report]:
        if not items:
            return
        command = [sys.executable, "-m", "autograder.batch.queue"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        missing = len(items)
        try:
            process.stdin.write(cloudpickle.dumps((work, list(items), jobs)))
            process.stdin.close()
            for line in process.stdout:
                report = Report(*json.loads(line))
                if report.kind == REFUSED:
                    raise CourseError(report.value)
                missing -= report.kind != STEP
                yield report
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
        if missing:
            left = counted(missing, "item")
            raise CourseError(f"the processes that work ended with {left} to do")

    return reports


def progress(total: int, unit: str, shown: bool = True) -> tqdm:
    """A progress bar; where nobody watches, a line now and then."""
    every = 0.1 if sys.stderr.isatty() else 30.0
    return tqdm(total=total, unit=unit, mininterval=every, smoothing=0.05, disable=not shown)


class _Worker:
    """The near end of one process, and the number of the item that it works on."""

    def __init__(self, work: Work):
        context = multiprocessing.get_context("fork")
        self.connection, far_end = context.Pipe()
        arguments = (work, far_end, os.getpid())
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        far_end.close()
        self.item: int | None = None

    def give(self, number: int, item: Any) -> None:
        """Let it do this. Whether it is still alive shows in `read`."""
        self.item = number
        with contextlib.suppress(OSError):
            self.connection.send((number, item))

    def read(self) -> Report | None:
        """What it reports; None when it died."""
        try:
            return Report(*self.connection.recv())
        except (EOFError, OSError):
            return None


class _Crew:
    """The processes that do the items; one that dies is replaced."""

    def __init__(self, work: Work, items: Sequence[Any], jobs: int):
        self.work, self.items = work, items
        self.waiting, self.tries = deque(range(len(items))), Counter()
        self.workers = [_Worker(work) for _ in range(min(jobs, len(items)))]

    def reports(self) -> Iterator[Report]:
        """All that the workers report, until each item is done or lost."""
        while busy := self._busy():
            for connection in wait([worker.connection for worker in busy]):
                worker = next(w for w in busy if w.connection is connection)
                report = worker.read() or self._replace(worker)
                if report and report.kind != STEP:
                    worker.item = None
                if report:
                    yield report

    def end(self) -> None:
        """End the workers, and all that they started."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join(END_SECONDS)
            worker.process.kill()

    def _busy(self) -> list[_Worker]:
        """The workers that have an item, after those without one got theirs."""
        for worker in self.workers:
            if worker.item is None and self.waiting:
                number = self.waiting.popleft()
                worker.give(number, self.items[number])
        return [worker for worker in self.workers if worker.item is not None]

    def _replace(self, dead: _Worker) -> Report | None:
        """Another worker for a dead one; a report if its item was tried often enough."""
        number = dead.item
        dead.connection.close()
        self.workers[self.workers.index(dead)] = _Worker(self.work)
        self.tries[number] += 1
        if self.tries[number] < TRIES:
            self.waiting.appendleft(number)
            return None
        return Report(number, LOST, f"the process that did it ended, {TRIES} times")


def _serve(work: Work, connection: Any, parent: int) -> None:
    """Do what comes in until this process is told to end, and leave nothing."""
    _end_with(parent)
    _end_when_told()
    with work.worker() as do, contextlib.suppress(EOFError):
        while True:
            number, item = connection.recv()

            def say(step: Any, number: int = number) -> None:
                connection.send((number, STEP, step))

            connection.send((number, DONE, do(item, say)))


def _end_with(parent: int | None = None) -> None:
    """End when the parent does, however it does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Do the items that come through standard input; a line on standard output is a report."""
    _end_with()
    _end_when_told()
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what anybody prints is no report
    work, items, jobs = cloudpickle.load(sys.stdin.buffer)
    try:
        work.prepare()
    except CourseError as error:
        sys.exit(print(json.dumps([-1, REFUSED, str(error)]), file=lines))
    crew = _Crew(work, items, jobs)
    try:
        for report in crew.reports():
            print(json.dumps(astuple(report)), file=lines)
    finally:
        crew.end()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever asked may say so as we leave


def _end_when_told() -> None:
    """SIGTERM ends this process as an exception does, once: what it began it also ends."""

    def told(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(0)

    signal.signal(signal.SIGTERM, told)


if __name__ == "__main__":
    main()
