"""Warm workers: processes that judge submissions side by side, each with a kernel and a sandbox.

`judge_all` gives out submissions one at a time and yields judgements as they come; whoever called
it writes them down, so there is one writer. `judge_shard` does the same into a journal of its own:
that is a Slurm job's part of a class, and `Journal.merge` brings the parts together.

One process, the nursery, loads torch, papermill and nbgrader once and forks every worker. It knows
where the class lies and opens none of it. When the process that grades is gone, so is everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from autograder.grade.engine import Grader
from autograder.grade.journal import Journal, Judgement
from autograder.places import Places
from byhand.runtime.process.teams import prctl

Place = tuple[str, str]  # student, assignment
TRIES = 2  # a submission whose worker dies is given to another one, once
_PR_SET_PDEATHSIG = 1


def cores() -> int:
    """CPUs that this process may use: as many jobs as pay."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def judge_shard(
    where: Places, todo: Sequence[Place], path: Path, engine: dict[str, Any], jobs: int = 1
) -> int:
    """Judge these submissions into the journal at `path`, but for those that stand in it already.

    So a shard that was ended goes on where it was. Returns how many were judged now.
    """
    journal = Journal(path)
    with Grader(where, **engine) as grader:
        missing = [place for place in todo if not journal.find(grader.take_in(*place).key)]
    for judgement in judge_all(where, missing, engine, jobs):
        journal.append(judgement)
    return len(missing)


def judge_all(
    where: Places, todo: Sequence[Place], engine: dict[str, Any], jobs: int
) -> Iterator[Judgement]:
    """A judgement on each submission, as they are done; `engine` is what Grader is made with.

    Nothing is written down here. Closing the iterator ends the workers.
    """
    if jobs == 1 or len(todo) < 2:
        with Grader(where, **engine) as grader:
            for student, assignment in todo:
                yield grader.judge(grader.take_in(student, assignment))
        return
    with Team(where, engine, min(jobs, len(todo))) as team:
        yield from team.judge(todo)


class Worker:
    """The near end of one worker: what it works on, and where its judgement will come."""

    def __init__(self, nursery: socket.socket):
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(nursery, [b"w"], [theirs.fileno()])
        self.connection = Connection(ours.detach())
        self.place: Place | None = None

    def give(self, place: Place) -> None:
        """Let it judge this submission. Whether it is still alive shows in `take`."""
        self.place = place
        with contextlib.suppress(OSError):
            self.connection.send_bytes(json.dumps(place).encode())

    def take(self) -> Judgement | None:
        """Its judgement; None when it died."""
        try:
            return Judgement.from_line(self.connection.recv_bytes())
        except (EOFError, OSError):
            return None


class Team:
    """Some workers, and the nursery that forks them and replaces those that die."""

    def __init__(self, where: Places, engine: dict[str, Any], size: int):
        self.where, self.engine = where, engine
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = json.dumps([str(where.course), str(where.class_dir), engine])
        command = [sys.executable, "-m", "autograder.batch.workers", str(theirs.fileno()), settings]
        with theirs:
            self._nursery = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self.workers = [Worker(self._control) for _ in range(size)]

    def judge(self, todo: Sequence[Place]) -> Iterator[Judgement]:
        """A judgement on each, as they are done. A worker has its next one before this yields."""
        waiting = deque(todo)
        tries = dict.fromkeys(todo, 0)
        while True:
            for number, worker in enumerate(self.workers):
                if worker.place is None and waiting:
                    self.workers[number].give(waiting.popleft())
            busy = {w.connection: w for w in self.workers if w.place is not None}
            if not busy:
                return
            for connection in wait(list(busy)):
                yield from self._result_of(busy[connection], waiting, tries)

    def close(self) -> None:
        """End the workers, their kernels and their sandboxes."""
        self._control.close()
        for worker in self.workers:
            worker.connection.close()
        self._nursery.wait()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _result_of(
        self, worker: Worker, waiting: deque[Place], tries: dict[Place, int]
    ) -> Iterator[Judgement]:
        """The judgement of a worker that is done, if it lived to give one."""
        place, judgement = worker.place, worker.take()
        if judgement is None:
            worker.connection.close()
            self.workers[self.workers.index(worker)] = worker = Worker(self._control)
            tries[place] += 1
            if tries[place] < TRIES:
                waiting.appendleft(place)
            else:
                judgement = self._unjudged(place)
        worker.place = None
        if waiting:
            worker.give(waiting.popleft())
        if judgement is not None:
            yield judgement

    def _unjudged(self, place: Place) -> Judgement:
        with Grader(self.where, **self.engine) as grader:
            return grader.unjudged(grader.take_in(*place), "the worker that judged it ended")


def _nurse(control: socket.socket, where: Places, engine: dict[str, Any]) -> None:
    """Fork a worker for each connection that arrives; end them when there is nobody to ask."""
    workers: set[int] = set()
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            break
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            _follow(parent)
            control.close()
            _work(Connection(fds[0]), where, engine)
        os.close(fds[0])
        workers.add(child)
        workers -= _ended()
    workers -= _ended()
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    for worker in workers:
        os.waitpid(worker, 0)


def _work(connection: Connection, where: Places, engine: dict[str, Any]) -> None:
    """Judge what comes in until nobody asks any more, and leave nothing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    status = 1
    try:
        with Grader(where, **engine) as grader:
            while True:
                student, assignment = json.loads(connection.recv_bytes())
                judgement = grader.judge(grader.take_in(student, assignment))
                connection.send_bytes(judgement.as_line())
    except (EOFError, SystemExit):
        status = 0
    finally:
        os._exit(status)


def _follow(parent: int) -> None:
    """End when the parent does, however it does."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _ended() -> set[int]:
    ended = set()
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            ended.add(pid)
    return ended


def main() -> None:
    """Be a nursery: arguments are the descriptor of a socket, and where and how to judge."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    course, class_dir, engine = json.loads(sys.argv[2])
    _nurse(control, Places(Path(course), Path(class_dir)), engine)


if __name__ == "__main__":
    main()
