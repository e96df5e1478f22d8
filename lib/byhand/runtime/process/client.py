"""A connection to a fork server: starts it, asks it for teams of ranks, and ends them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byhand.runtime.errors import DeadlineError, LaunchError, SandboxError
from byhand.runtime.messages import receive_message, send_message
from byhand.runtime.process.member import Deadline, Member, read_all
from byhand.runtime.process.team import STACK_SECONDS, Team
from byhand.runtime.process.whereabouts import folder
from byhand.runtime.program import COMPILER
from byhand.runtime.system import PORTABLE, STACK_SIGNAL, new_file, new_mark
from byhand.runtime.trace.log import CAPACITY, add_call_of_the_killed
from byhand.words import counted

if TYPE_CHECKING:
    from byhand.runtime.process.place import Place

START_SECONDS = 120.0
END_SECONDS = ANSWER_SECONDS = 15.0
STACK_PAUSE = 0.01  # between two looks whether the ranks have told where they are
# Memory in huge pages: forking a rank and ending it then cost a quarter of the time, because
# there are 500 times fewer page-table entries to copy and to tear down.
# torch's TCPStore looks up the name of every address, 127.0.0.1 included: the resolver is to give
# up after a second, not five. c10d reads its log level when torch is imported.
ENVIRON = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",
    "PYTHONMALLOC": "malloc",
    "RES_OPTIONS": "timeout:1 attempts:1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}


def environment() -> dict[str, str]:
    """This process's environment, as a fork server needs it; what the reader has set is his."""
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    return {**ENVIRON, **os.environ, **new_mark(), "PYTHONPATH": path}


class ForkClient:
    """One fork server, started as a process of its own or forked from another client's."""

    def __init__(self, connection: socket.socket, parent: tuple[ForkClient, int] | None = None):
        self.connection = connection
        self.owner = os.getpid()
        # its ranks begin with it
        self.environ: dict[str, str] = parent[0].environ if parent else dict(os.environ)
        self._parent = parent
        self._process: subprocess.Popen | None = None
        self._errors = -1
        self._is_ready = False
        self._numbers = itertools.count(1)  # of what it forks: teams, and more servers
        self._teams: dict[int, ForkedTeam] = {}
        self._loaded: dict[str, float] = {}  # files that it was to load, and when written

    @classmethod
    def start(cls, command: Sequence[str] = ()) -> ForkClient:
        """Start a fork server, behind `command` if any. It imports torch: a second or two."""
        ours, theirs = socket.socketpair()
        client = cls(ours)
        client._errors = new_file("byhand errors")
        # -P: a file of the reader's folder may be named as one that torch imports
        server = [sys.executable, "-P", "-m", "byhand.runtime.process.server", str(theirs.fileno())]
        with theirs:
            client._process = subprocess.Popen(
                [*command, *server],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=client._errors,
                stderr=client._errors,
                env=environment(),
                cwd=folder() or "/",
            )
        return client

    def wait_until_ready(self) -> None:
        """Return when the server has imported torch and takes requests.

        Raises:
            SandboxError: it is gone, or not ready after START_SECONDS.
        """
        if not self._is_ready:
            self.expect("hello", START_SECONDS)

    @property
    def process_id(self) -> int | None:
        """The fork server's process id, if this client started it."""
        return self._process.pid if self._process is not None else None

    def is_usable(self) -> bool:
        """Whether the server still runs, belongs to this process and not to its parent, and no file
        that it has loaded for its ranks has been written since.

        Of one that was forked from another's nobody may start a second in its place: whether it
        runs, the next message to it tells.
        """
        if self.owner != os.getpid() or self._parent is not None:
            return self.owner == os.getpid()
        is_open = self.connection.fileno() >= 0
        if any(_written(file) != when for file, when in self._loaded.items()):
            return False
        return is_open and (self._process is None or self._process.poll() is None)

    def fresh(self, place: Place) -> ForkClient:
        """A fork server forked from this one, whose ranks live in `place`.

        This file knows no other than the usual. The server loads what a place needs once, for all
        that come.

        Raises:
            SandboxError: the kernel refuses, or is not Linux's.
        """
        if PORTABLE:
            raise SandboxError("it needs Linux, and ranks start by the portable path")
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        child = ForkClient(ours, parent=(self, number))
        with theirs:
            self.send({"do": "fresh", "team": number, "place": place}, [theirs.fileno()])
        try:
            child.expect("hello", START_SECONDS)
        except LaunchError:
            child.close()
            raise
        return child

    def hang_up(self) -> None:
        """Have the server end, and whoever waits for it hear so; another thread may."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the server and everything that it forked; return when they are gone."""
        self.connection.close()
        if self.owner != os.getpid():
            return
        if self._parent is not None:
            parent, number = self._parent
            if parent.is_usable():
                parent.end(number)
        elif self._process is not None:
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            os.close(self._errors)
            self._process = None

    def fork_team(self, spec: dict[str, Any], deadline: Deadline | None = None) -> ForkedTeam:
        """Fork the ranks of a launch (spec["ranks"]: those of this machine); they join the world
        if so asked, and wait.

        Raises:
            DeadlineError: it was over first; the server has been ended with all that it forked.
        """
        team = ForkedTeam(self, next(self._numbers))
        self._teams[team.number] = team
        try:
            for rank in spec.get("ranks", range(spec["world_size"])):
                self._wait_for_room(deadline, rank, spec["world_size"])
                member, fds = Member.create(rank, spec.get("log_bytes", CAPACITY))
                team.members.append(member)
                with fds[0] as theirs:
                    message = {"do": "rank", "team": team.number, "rank": rank, **spec}
                    self.send(message, [theirs.fileno(), *fds[1:]])
        except BaseException:
            team.end()
            raise
        return team

    def load(self, modules: dict[str, str]) -> None:
        """Have the server load these modules, by name with their files, before it forks again."""
        new = {name: file for name, file in modules.items() if file not in self._loaded}
        if new:
            self._loaded.update({file: _written(file) for file in new.values()})
            self.send({"do": "load", "modules": sorted(new)})

    def load_for_programs(self) -> None:
        """Return when the server has loaded what a program's optimizer needs, once for all ranks.

        Raises:
            LaunchError: it does not answer.
        """
        self.send({"do": "load", "modules": [COMPILER]})
        self.send({"do": "count"})
        self.expect("count", START_SECONDS)  # a cluster's disk may be slow to give it

    def _wait_for_room(self, deadline: Deadline | None, rank: int, world_size: int) -> None:
        """Return when the server has taken in most of what it was asked."""
        if deadline is None or self.connection.fileno() < 0:
            return
        room = select.poll()
        room.register(self.connection, select.POLLOUT)
        if not room.poll(1000 * min(deadline.left, START_SECONDS)):
            if self._process is not None:
                self._process.kill()  # and so its ranks, none of which has run anybody's code yet
            self.close()
            limit = "the deadline of " if deadline.seconds <= START_SECONDS else ""
            seconds = min(deadline.seconds, START_SECONDS)
            raise DeadlineError(
                f"{counted(world_size, 'rank')} could not be started within {limit}"
                f"{seconds:g} s: it was over before rank {rank} was"
            )

    def end(self, number: int) -> None:
        """Kill what was forked under a number, and all that it started; return when it is gone.

        A server that does not say so in time is ended, and all that it forked with it.
        """
        self._teams.pop(number, None)
        if self.connection.fileno() < 0:
            return
        try:
            self.send({"do": "end", "team": number})
            self.expect("ended", END_SECONDS, number)
        except LaunchError:
            self.close()

    def count(self) -> dict[str, Any]:
        """What the network of the server's ranks has carried so far; empty if it is not their own.

        Raises:
            LaunchError: the server does not answer.
        """
        return self.ask("count", do="count")

    def ask(self, kind: str, **message: Any) -> Any:
        """What the server answers to a message: what its next one of this kind says.

        Raises:
            LaunchError: it does not answer.
        """
        self.send(message)
        return self.expect(kind, ANSWER_SECONDS)[kind]

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a message and descriptors."""
        try:
            send_message(self.connection, pickle.dumps(message), fds)
        except OSError as error:
            words = f"the fork server ended by itself ({error}); {self.last_words()}"
            raise SandboxError(words) from None

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next message; None when none comes within `seconds`."""
        self.connection.settimeout(seconds)
        try:
            data, _ = receive_message(self.connection)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            data = b""
        if not data:
            raise SandboxError(f"the fork server ended by itself; {self.last_words()}")
        message = json.loads(data)
        self._is_ready = True  # the first is hello
        if (team := self._teams.get(message.get("team"))) is not None:
            team.take(message)
        return message

    def catch_up(self) -> None:
        """Take in all that the server has said by now."""
        while self.receive(0) is not None:
            pass

    def expect(self, kind: str, seconds: float, team: int | None = None) -> dict[str, Any]:
        """The next message that has `kind` in it (and names `team`), passing over others."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            message = self.receive(left)
            if message is None:
                break
            if "failed" in message:
                raise SandboxError(message["failed"])
            if kind in message and team in (None, message[kind]):
                return message
        raise SandboxError(f"the fork server said no {kind!r} within {seconds:.0f} s")

    def last_words(self) -> str:
        """What the fork server wrote to its standard error."""
        client = self if self._parent is None else self._parent[0]
        if client._process is None:
            return "it said nothing"
        with contextlib.suppress(subprocess.TimeoutExpired):
            client._process.wait(timeout=0.2)
        text = read_all(client._errors, 1 << 16).decode(errors="replace").strip()
        return f"its last words: {text[-2000:]}" if text else "it said nothing"


def _written(file: str) -> float:
    """When a file was last written; 0 where there is none any more."""
    try:
        return os.stat(file).st_mtime
    except OSError:
        return 0.0


class ForkedTeam(Team):
    """Ranks that a fork server of this machine forks: see ForkClient.fork_team."""

    def __init__(self, client: ForkClient, number: int):
        self.client, self.number = client, number
        self.news = client.connection
        self.members: list[Member] = []
        self._exits: dict[int, int] = {}
        self._failed: str | None = None  # why a rank could not be forked

    def take(self, message: dict[str, Any]) -> None:
        """What the server says of this team."""
        if "failed" in message:
            self._failed = message["failed"]
        if "exit" in message:
            self._exits[message["rank"]] = message["exit"]
            if message["exit"] < 0:
                killed = next(each for each in self.members if each.rank == message["rank"])
                with contextlib.suppress(OSError):  # it is closed: nobody reads it any more
                    add_call_of_the_killed(killed.log_fd)

    def exits(self) -> dict[int, int]:
        """As Team says.

        Raises:
            SandboxError: the server is gone, or could not start a rank.
        """
        self.client.catch_up()
        if self._failed is not None:
            raise SandboxError(f"a rank could not be started: {self._failed}")
        return dict(self._exits)

    def stacks(self) -> dict[int, float]:
        """As Team says."""
        until = time.monotonic() + STACK_SECONDS
        before = {member.rank: member.stack_bytes for member in self.members}
        seconds = self._signal(STACK_SIGNAL)
        while time.monotonic() < until:
            time.sleep(STACK_PAUSE)
            asked = seconds.keys() - self.exits().keys()
            live = (member for member in self.members if member.rank in asked)
            if all(member.has_told_its_stack(before[member.rank]) for member in live):
                break
        return {rank: sum(times) for rank, times in seconds.items()}

    def waited(self) -> float:
        """The most seconds that a rank waited for a processor."""
        return max((waited for _, waited in self._signal(0).values()), default=0.0)

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """As Team says."""
        self._signal(number)

    def _signal(self, number: int) -> dict[int, list[float]]:
        """Signal the ranks, or with 0 do not; the seconds that each computed, and waited to."""
        times = self.client.ask("times", do="signal", team=self.number, signal=number)
        return {int(rank): seconds for rank, seconds in times.items()}

    def hand_on(self) -> None:
        """Have the server load what these ranks had to: those after them have it.

        Raises:
            SandboxError: the server is gone.
        """
        headers = [member.header or {} for member in self.members]
        loaded = [header.get("loaded", {}).items() for header in headers]
        self.client.load({name: file for modules in loaded for name, file in modules})

    def close(self) -> None:
        """Close this process's ends of the ranks."""
        for member in self.members:
            member.close()

    def end(self) -> None:
        """As Team says; a server that does not say in time that it is done is ended itself."""
        self.close()
        self.client.end(self.number)
