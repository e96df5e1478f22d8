"""One queue for all work: items, done side by side here, or on the nodes of a cluster.

A kind of work is plain data and says how one item is done: `grade_work.GradeWork` a submission,
`running.Running` a notebook. `here` does items in threads of this process, each of which drives a
kernel: what computes, and what nobody trusts, is behind that. `slurm.on_slurm` does them as a job
array, each of whose jobs is `here` again; both yield the same reports.

What an item's result leaves in doubt because others ran beside it is done once more, alone.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from queue import Empty
from queue import Queue as Channel
from typing import Any, Protocol

from tqdm import tqdm

from autograder.places import CourseError

END_SECONDS = 20.0  # that a thread has to end its kernel and its sandbox
Do = Callable[[Any], Any]


class Work(Protocol):
    """A kind of work. Items and results are plain data, as JSON has it."""

    def worker(self) -> AbstractContextManager[tuple[Do, Callable[[], None]]]:
        """What a thread works with: a function that gives an item's result, and one that ends,
        from any thread, what is being done."""

    def is_doubtful(self, result: Any) -> bool:
        """Whether an item may have another result where nothing else runs beside it."""


@dataclass(frozen=True)
class Report:
    """What became of an item, by its number: its result, or `why` it has none."""

    item: int
    result: Any
    why: str = ""


Queue = Callable[[Work, Sequence[Any]], Generator[Report]]


def cores() -> int:
    """CPUs that this process may use: as many items at a time as pay."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def here(jobs: int) -> Queue:
    """A queue that does `jobs` items at a time in this process.

    Closing the iterator ends what runs. Raises what a worker raises as it starts.
    """

    def reports(work: Work, items: Sequence[Any]) -> Generator[Report]:
        doubtful = []
        with contextlib.closing(_side_by_side(work, dict(enumerate(items)), jobs)) as found:
            for report in found:
                if jobs > 1 and not report.why and work.is_doubtful(report.result):
                    doubtful.append(report.item)
                else:
                    yield report
        yield from _side_by_side(work, {number: items[number] for number in doubtful}, 1)

    return reports


def together(do: Queue, first: Work, items: Sequence[Any], take: Callable[[Report], None]) -> Queue:
    """The queue `do`, that with the work it is given does these items of another, before it.

    So the same workers, as many as there are, go from one to the other, and none of them waits.
    `take` gets the reports on these items.
    """

    def reports(work: Work, others: Sequence[Any]) -> Generator[Report]:
        both = [*((0, item) for item in items), *((1, item) for item in others)]
        with contextlib.closing(do(_Two((first, work)), both)) as found:
            for report in found:
                own = replace(report, result=None if report.why else report.result[1])
                if report.item < len(items):
                    take(own)
                else:
                    yield replace(own, item=report.item - len(items))

    return reports


@dataclass(frozen=True)
class _Two:
    """Two kinds of work as one: items are (0 or 1, an item of that), results likewise."""

    works: tuple[Work, Work]

    @contextlib.contextmanager
    def worker(self) -> Iterator[tuple[Do, Callable[[], None]]]:
        """Of each kind a worker, made at its first item."""
        ready: dict[int, tuple[Do, Callable[[], None]]] = {}
        with contextlib.ExitStack() as held:

            def do(item: tuple[int, Any]) -> tuple[int, Any]:
                kind, own = item
                if kind not in ready:
                    ready[kind] = held.enter_context(self.works[kind].worker())
                return kind, ready[kind][0](own)

            def kill() -> None:
                for _, kill_one in list(ready.values()):
                    kill_one()

            yield do, kill

    def is_doubtful(self, result: tuple[int, Any]) -> bool:
        """As the kind of work says."""
        return self.works[result[0]].is_doubtful(result[1])


def progress(total: int, unit: str, shown: bool = True) -> tqdm:
    """A progress bar; where nobody watches, a line now and then."""
    every = 0.1 if sys.stderr.isatty() else 30.0
    return tqdm(total=total, unit=unit, mininterval=every, smoothing=0.05, disable=not shown)


def _side_by_side(work: Work, items: dict[int, Any], jobs: int) -> Generator[Report]:
    todo, news = deque(items.items()), Channel(maxsize=1)  # no more than one waits to be kept
    workers = [_Worker(work, todo, news) for _ in range(min(jobs, len(items)))]
    missing = len(items)
    try:
        for worker in workers:
            worker.start()
        while missing:
            report = news.get()
            if isinstance(report, BaseException):
                raise report
            missing -= 1
            yield report
    finally:
        todo.clear()
        for worker in workers:
            worker.end(at_once=missing > 0)


class _Worker(threading.Thread):
    """Takes items as long as there are some, and tells what becomes of each."""

    def __init__(self, work: Work, todo: deque, news: Channel):
        super().__init__(daemon=True)
        self.work, self.todo, self.news = work, todo, news
        self.kill: Callable[[], None] = lambda: None

    def run(self) -> None:
        """Until nothing is left to do."""
        try:
            with self.work.worker() as (do, self.kill), contextlib.suppress(IndexError):
                while True:
                    self._do(do, *self.todo.popleft())
        except BaseException as error:
            self.news.put(error)

    def _do(self, do: Do, number: int, item: Any) -> None:
        try:
            self.news.put(Report(number, do(item)))
        except Exception as error:
            kind = "" if isinstance(error, CourseError) else f"{type(error).__name__}: "
            self.news.put(Report(number, None, f"{kind}{error}"))

    def end(self, at_once: bool) -> None:
        """Return when nothing is left of it; `at_once`: end what is being done."""
        until = time.monotonic() + END_SECONDS
        while self.is_alive() and time.monotonic() < until:
            if at_once:
                self.kill()
            with contextlib.suppress(Empty):
                self.news.get(timeout=0.1)
