"""The notebook's side: one srun, whose nodes' words become a Run or the error that explains."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byhand.runtime.errors import LaunchError
from byhand.runtime.messages import read_message
from byhand.runtime.process.client import environment
from byhand.runtime.process.member import Deadline, Member
from byhand.runtime.process.place import OPEN
from byhand.runtime.process.team import Team
from byhand.runtime.process.whereabouts import whereabouts
from byhand.runtime.run import Options, Run
from byhand.runtime.slurm import epoch, placement
from byhand.runtime.system import no_files_left
from byhand.runtime.trace.log import append_log
from byhand.runtime.watch.supervise import Supervisor

START_SECONDS = 120.0
CLOSE_SECONDS = 10.0
POLL_SECONDS = 0.02
SAME_CLOCK = 0.001


class SlurmLauncher:
    """Starts ranks on the nodes of the Slurm allocation that this process is in."""

    def run(self, world_size: int, asked: Options, pickled: Callable[[], list[bytes]]) -> Run:
        """As Launcher.run. The deadline begins when the ranks have been forked.

        Raises:
            LaunchError: this process is in no allocation, no folder can be made where its nodes
                meet, or a node did not come, or was lost.
        """
        if asked.network is not None:
            raise ValueError(
                f"{asked.network!r} is made on one machine; on a Slurm allocation the network is"
                " the real one"
            )
        if "SLURM_JOB_ID" not in os.environ or shutil.which("srun") is None:
            raise LaunchError(
                'launcher="slurm" starts ranks on the nodes of a Slurm allocation, and this process'
                " is in none: start it with salloc or sbatch, or by autograder run --slurm"
            )
        spec: dict[str, Any] = {"world_size": world_size, "threads": asked.threads_per_rank}
        spec.update(setup=asked.setup, backend=asked.backend)
        header: dict[str, Any] = {"alone": asked.alone, "memory": bool(asked.memory)}
        header["there"] = whereabouts(os.environ)  # srun takes the environment along
        calls = pickled()
        with _shared_folder() as folder:
            Path(folder, "request").write_bytes(pickle.dumps((spec, header, calls)))
            step = Step(Path(folder), world_size)
            try:
                step.wait_for_nodes()
                return Supervisor(step, OPEN, {}).run(Deadline(asked.deadline))
            finally:
                step.end()

    def start(self) -> None:
        """Nothing waits between launches."""

    close = leave = start


def _shared_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder in which the nodes meet.

    Raises:
        LaunchError: none can be made there.
    """
    where = os.environ.get("BYHAND_SHARED") or "."
    try:
        return tempfile.TemporaryDirectory(prefix=".byhand-", dir=os.path.abspath(where))
    except OSError as error:
        named = "the current directory" if where == "." else f"BYHAND_SHARED={where}"
        raise LaunchError(
            f"no folder in which the nodes meet can be made in {named}: {error.strerror}. Set"
            " BYHAND_SHARED to a folder that exists, that all nodes see, and that you may write to"
        ) from None


class Step(Team):
    """One srun: the nodes' programs, and a thread that takes in what they write of their ranks."""

    def __init__(self, folder: Path, world_size: int):
        nodes = os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES") or "1"
        self.folder = folder
        self.num_nodes = min(int(nodes), world_size)
        self.members: list[Member] = []
        self.theirs: list[socket.socket] = []  # which a rank here would have
        self._exits: dict[int, int] = {}
        self.answers: dict[str, list[Any]] = defaultdict(list)
        with contextlib.ExitStack() as opened:
            try:
                self._open(world_size, opened)
            except OSError as error:
                if error.errno != errno.EMFILE:
                    raise
                raise LaunchError(no_files_left(world_size)) from None
            self.opened = opened.pop_all()
        self.closing = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _open(self, world_size: int, opened: contextlib.ExitStack) -> None:
        """Open all that a step needs, and start srun; `opened` closes it."""
        for rank in range(world_size):
            member, (theirs, *_) = Member.create(rank)
            opened.callback(member.close)
            self.members.append(member)
            self.theirs.append(opened.enter_context(theirs))
        self.news, self.wake = map(opened.enter_context, socket.socketpair())
        self.news.setblocking(False)
        self.srun_output = opened.enter_context(tempfile.TemporaryFile())
        self.process = subprocess.Popen(
            self._command(),
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=self.srun_output,
            stderr=self.srun_output,
            env=environment(),
        )
        self.stdin: Any = self.process.stdin

    def _command(self) -> list[str]:
        number = str(self.num_nodes)
        step = ["--overlap", "--cpu-bind=none", "--mpi=none", "--kill-on-bad-exit=1"]
        nodes = [f"--nodes={number}", f"--ntasks={number}", "--ntasks-per-node=1"]
        program = [sys.executable, "-m", "byhand.runtime.slurm.node", str(self.folder)]
        return ["srun", *step, *nodes, *program]

    def wait_for_nodes(self) -> None:
        """Return when all nodes have forked their ranks, and it is known how their clocks go.

        Raises:
            LaunchError: one did not come, or was lost.
        """
        here, there = epoch(), dict(self._ask("ready", START_SECONDS))
        placed = placement(len(self.members), self.num_nodes)
        for member, node in zip(self.members, placed, strict=True):
            ahead = here - there[node]
            member.log.clock_ahead = ahead if abs(ahead) > SAME_CLOCK else 0.0

    def exits(self) -> dict[int, int]:
        """As Team says.

        Raises:
            LaunchError: a node was lost.
        """
        with contextlib.suppress(BlockingIOError):
            self.news.recv(1 << 12)
        self._check()
        return dict(self._exits)

    def stacks(self) -> dict[int, float]:
        """As Team says."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.write(b"\n")
            self.stdin.flush()
        return {rank: used for some in self._ask("stacks", 15.0) for rank, used in some.items()}

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Nothing: it is asked for a program's ranks, and those live on one machine."""

    def _ask(self, kind: str, seconds: float) -> list[Any]:
        """What each node says of this kind, when all have said it."""
        until = time.monotonic() + seconds
        while (came := len(self.answers[kind])) < self.num_nodes:
            self._check()
            if time.monotonic() > until:
                nodes = f"{came} of {self.num_nodes} nodes answered"
                raise LaunchError(f"{nodes}; {self._last_words()}")
            time.sleep(POLL_SECONDS)
        return self.answers.pop(kind)

    def _check(self) -> None:
        if self.process.poll() is not None:
            raise LaunchError(f"lost a node of the allocation; {self._last_words()}")

    def _last_words(self) -> str:
        self.srun_output.seek(0)
        text = self.srun_output.read().decode(errors="replace").strip()
        return f"srun's last words: {text[-2000:]}" if text else "srun said nothing"

    def _read(self) -> None:
        """The thread: take in what the nodes say as it comes, until the step is closed."""
        read = [0] * self.num_nodes
        while not self.closing.wait(POLL_SECONDS):
            for node in range(self.num_nodes):
                with (
                    contextlib.suppress(FileNotFoundError),
                    open(self.folder / f"node.{node}", "rb") as file,
                ):
                    file.seek(read[node])
                    while (data := read_message(file)) is not None:
                        read[node] = file.tell()
                        self._take(*pickle.loads(data))
            if self.process.poll() is not None:
                self.wake.send(b".")

    def _take(self, kind: str, rank: int | None, value: Any) -> None:
        if rank is None:
            self.answers[kind].append(value)
        elif kind == "log":
            append_log(self.members[rank].log_fd, value)
        elif kind == "wake":
            self.theirs[rank].sendall(value)
        elif kind == "exit":
            self.members[rank].has_its_call, self._exits[rank] = value
            self.wake.send(b".")
        else:
            os.write(getattr(self.members[rank], f"{kind}_fd"), value)

    def end(self) -> None:
        """As Team says: srun ends, and so all that it started."""
        self.closing.set()
        self.stdin.close()
        for end in (lambda: None, self.process.terminate, self.process.kill):
            end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(CLOSE_SECONDS)
                break
        self.opened.close()
        self.reader.join()
