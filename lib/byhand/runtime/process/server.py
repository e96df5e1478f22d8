"""The process from which every rank is forked: it imports torch once, and then only forks.

But for modules of this library, and torch's compiler, which it loads when a rank has: the ranks
after it have them.

Started as `python -m byhand.runtime.process.server FD`, where FD is a socket to the notebook's
process. It has no threads but OpenBLAS's, which that ends before a fork, so forking is safe; and it
never touches CUDA, so its children may. All that a rank leaves behind becomes this process's child
(it is a subreaper) and is killed with the rank's team; when the notebook's process is gone, its
socket closes and everything ends.

Messages in, pickled: rank (5 descriptors), load, end, signal, fresh (1 descriptor), count.
Messages out, JSON: hello, exit, ended, times, count, failed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pickle
import resource
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from byhand.runtime import system
from byhand.runtime.messages import receive_message, send_message
from byhand.runtime.process import rank as rank_process
from byhand.runtime.process.place import OPEN, Place
from byhand.runtime.program import COMPILER
from byhand.runtime.trace import hooks

TIDY_SECONDS = 1.0
MANY_RANKS, PAUSE_SECONDS = 32, 0.05  # who forked so many will fork more; a pause is this long
RANKS_A_SERVER = 4  # that one more server is likely to fork, from this one's pages


@dataclass
class Processes:
    """What was forked under one number: the ranks of a team, or one more server."""

    world_size: int = 0
    ranks: dict[int, int] = field(default_factory=dict)  # process id -> rank
    port: Any = None  # a socket on a free one, kept for a store of the program's own
    store: int = -1  # a file in which the ranks find each other
    store_path: str = ""  # its name, on a rank

    def prepare(self, world_size: int) -> None:
        """Reserve what the ranks of a launch share, before the first of them is forked."""
        if self.port is None:
            self.world_size, self.port = world_size, system.free_port()
            self.store, self.store_path = system.meeting_place()

    def close(self) -> None:
        """Give back what was reserved."""
        if self.port is not None:
            self.port.close()
            system.leave_meeting_place(self.store, self.store_path)


class Server:
    """Forks ranks on request, reports their ends, and kills what they leave.

    `place`: where they live. Where that is isolated, this is the first process of a process
    namespace, and nothing outlives it there. `alone`: it shares no memory with who forked it, so
    it may take large pages.
    """

    def __init__(self, connection: socket.socket, place: Place = OPEN, alone: bool = False):
        self.connection = connection
        self.alone = alone
        self.place = place
        self.teams: dict[int, Processes] = {}
        self.num_forked = 0
        self.wake_read, self.wake_write = os.pipe()  # written when a child ends
        self.life_read, self.life_write = os.pipe()  # ends with this process
        for end in (self.wake_read, self.wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM):  # Slurm sends it to all that are in a job
            signal.signal(number, signal.SIG_IGN)
        system.adopt_orphans()

    def serve(self) -> None:
        """Answer messages until the other side closes; then kill everything."""
        self.send({"hello": os.getpid()})
        selector = selectors.DefaultSelector()
        selector.register(self.connection, selectors.EVENT_READ)
        selector.register(self.wake_read, selectors.EVENT_READ)
        looked, every = time.monotonic(), self.place.look_seconds
        large_pages = self.alone
        while True:
            due = large_pages and self.num_forked >= MANY_RANKS
            ready = selector.select(PAUSE_SECONDS if due else every if self.teams else None)
            if due and not ready:
                system.use_large_pages()
                large_pages = False
            for key, _ in ready:
                if key.fd == self.wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self.wake_read, 4096)
                    self.reap()
                elif not self.receive():
                    for team in list(self.teams):
                        self.end(team)
                    return
            if every is not None and time.monotonic() >= looked + every:
                self.place.weigh(sum(team.world_size for team in self.teams.values()))
                looked = time.monotonic()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; nobody may be there to read it."""
        with contextlib.suppress(OSError):
            send_message(self.connection, json.dumps(message).encode())

    def receive(self) -> bool:
        """Answer one message. False when the other side has closed."""
        try:
            data, fds = receive_message(self.connection, 8)
        except ConnectionError:
            data = b""
        if not data:
            return False
        message = pickle.loads(data)
        try:
            getattr(self, "do_" + message["do"])(message, fds)
        except OSError as error:
            self.send({"failed": f"{type(error).__name__}: {error}", "team": message.get("team")})
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def is_left(self) -> bool:
        """Whether the other side has closed, though messages of it may still lie here unread."""
        poll = select.poll()
        poll.register(self.connection, 0)  # the end of a connection is told unasked
        return bool(poll.poll(0))

    def do_rank(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork one rank of a team; the first one reserves the team's port.

        Nobody wants it, and none of those asked for after it, where the other side has closed.
        """
        if self.is_left():
            return
        team = self.teams.setdefault(message["team"], Processes())
        team.prepare(message["world_size"])
        message.setdefault("store", team.store_path)
        message.setdefault("address", (self.place.address, team.port.getsockname()[1]))
        pid = self.fork(lambda: self.place.main(fds, message, rank_process.main), fds)
        team.ranks[pid] = message["rank"]
        self.num_forked += 1

    def do_load(self, message: dict[str, Any], _: list[int]) -> None:
        """Load modules that ranks have loaded, each for itself: the next ranks then have them."""
        for name in message["modules"]:
            with contextlib.suppress(Exception):  # a rank that needs it says what is wrong
                importlib.import_module(name)
        keep()

    def do_fresh(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork a server like this one, whose ranks live in a place of their own.

        What ranks load that nobody trusts is handed on to none: it has what an optimizer needs.
        """
        if not message["place"].trusted and COMPILER not in sys.modules:
            self.do_load({"modules": [COMPILER]}, fds)
        team = self.teams.setdefault(message["team"], Processes())

        def body() -> None:
            """Be that server; where its place cannot be made, say why."""
            connection = socket.socket(fileno=os.dup(fds[0]))
            os.close(fds[0])
            try:
                place = message["place"].enter()
            except OSError as error:
                words = str(error.strerror or error)
                send_message(connection, json.dumps({"failed": words}).encode())
                return
            if place.isolate:
                system.end_with(self.life_read, None)  # it has been forked once more
            Server(connection, place).serve()

        team.ranks[self.fork(body, fds)] = 0
        self.num_forked += RANKS_A_SERVER

    def do_end(self, message: dict[str, Any], _: list[int]) -> None:
        """End a team, and say when it is gone."""
        self.end(message["team"])
        self.send({"ended": message["team"]})

    def do_signal(self, message: dict[str, Any], _: list[int]) -> None:
        """Send a team's ranks a signal, or 0 for none; the seconds each computed, and waited to."""
        self.reap()  # who asks has heard of all that ended until now
        team, names = self.teams.get(message["team"], Processes()), system.children()
        times = {}
        for pid, rank in team.ranks.items():
            times[rank] = system.cpu_seconds(pid), system.waited_seconds(names.get(pid, pid))
            system.signal_main_thread(pid, message["signal"])
        self.send({"times": times, "team": message["team"]})

    def do_count(self, message: dict[str, Any], _: list[int]) -> None:
        """What the network of the ranks has carried so far; nothing where it is not their own."""
        self.send({"count": self.place.count()})

    def fork(self, body: Any, keep: list[int]) -> int:
        """Fork a child that runs `body` with none of the server's descriptors but `keep`."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self.connection.close()
            for end in (self.wake_read, self.wake_write, self.life_write):
                os.close(end)
            system.end_with(self.life_read, parent)
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def reap(self) -> None:
        """Collect children that ended, and report those that were ranks."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                for number, team in self.teams.items():
                    if ended[0] in team.ranks:
                        rank = team.ranks.pop(ended[0])
                        code = os.waitstatus_to_exitcode(ended[1])
                        self.send({"exit": code, "team": number, "rank": rank})

    def end(self, number: int) -> None:
        """Kill the ranks of a team and all that they started; return when they are gone."""
        team = self.teams.pop(number, None)
        if team is None:
            return
        _kill(team.ranks)
        team.close()  # now that none is left who would make its meeting place again
        began = time.monotonic()
        while (seconds := time.monotonic() - began) < 5:
            left = self.orphans()
            tidy = seconds < TIDY_SECONDS
            tidying = {pid for pid, name in left.items() if tidy and _tidies_up(name)}
            if not _kill(left.keys() - tidying) and not tidying:
                break
            time.sleep(0.001)

    def orphans(self) -> dict[int, int]:
        """All that ranks left behind, and no rank of another team, as system.children says."""
        known = {pid for team in self.teams.values() for pid in team.ranks}
        if self.place.isolate and not self.place.trusted:  # all that it can see, at one blow
            return {} if known else {-1: -1}
        return {pid: name for pid, name in system.children().items() if pid not in known}


def _tidies_up(name: int) -> bool:
    """Whether process `name` (in /proc) is what Python starts to remove semaphores and shared
    memory; it does, and ends by itself."""
    with contextlib.suppress(OSError):
        return b"multiprocessing.resource_tracker" in Path(f"/proc/{name}/cmdline").read_bytes()
    return False


def _kill(pids: Iterable[int]) -> bool:
    """Kill processes, and wait for those that are this one's children. False if there was none."""
    found = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            found = True
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return found


def get_ready() -> None:
    """Load what ranks will need, and nothing that they would have to copy."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(GLOO_SOCKET_IFNAME=system.loopback())
    torch.set_num_threads(1)
    hooks.install()
    rank_process.rehearse()
    keep()


def keep() -> None:
    """Look through none of today's objects again: a collection in a child would copy them."""
    with contextlib.suppress(KeyError, AttributeError):  # not there: nor is what it saves
        # A rank empties these when it joins its world, and would copy their pages to do so.
        sys.modules["torch._dynamo"].trace_rules.clear_lru_cache()
    gc.collect()
    gc.freeze()


def main() -> None:
    """Serve on the socket whose descriptor is the first argument."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    get_ready()
    Server(connection, alone=True).serve()


if __name__ == "__main__":
    main()
