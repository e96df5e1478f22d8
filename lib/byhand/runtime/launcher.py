"""Starts ranks, hands them their call, and waits for what comes back: one Launcher per wall."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byhand.runtime.errors import LaunchError, NetworkError, SandboxError
from byhand.runtime.process.client import ForkClient
from byhand.runtime.process.member import Deadline, Member, send_calls
from byhand.runtime.process.place import place
from byhand.runtime.process.rank import OPEN, Open
from byhand.runtime.run import Options, Run
from byhand.runtime.system import check_room
from byhand.runtime.watch.supervise import Supervisor

if TYPE_CHECKING:
    from byhand.runtime.network.virtual import VirtualNetwork

WARM_TEAMS, WARM_RANKS = 2, 64  # so many are kept, of at most so many ranks
NETWORKS_KEPT = 2


class Launcher:
    """Starts ranks from one fork server; closing it leaves no process behind.

    `command` is put before the fork server's own (a sandbox). After `idle_seconds` without a launch
    every process is ended, and the next launch starts them anew.

    Of ranks that are not trusted, somebody measures the time: a deadline is then one of time that
    they had, and not of what other programs took. All launches share the seconds `left`, if any.
    """

    cells: Mapping[str, str] = {}  # whose lines errors may show, by label

    def __init__(
        self,
        command: Sequence[str] = (),
        idle_seconds: float | None = None,
    ):
        self.command = list(command)
        self.idle_seconds = idle_seconds
        self.left: float | None = None
        self.walls: Open = OPEN
        self.network: VirtualNetwork | None = None
        self._networks: dict[VirtualNetwork, Launcher] = {}
        self._client: ForkClient | None = None
        self._warm: dict[tuple, tuple[int, list[Member]]] = {}
        self._lock = threading.RLock()
        self._used = 0.0
        self._watch: threading.Thread | None = None

    def run(self, world_size: int, asked: Options, pickled: Callable[[], list[bytes]]) -> Run:
        """Run a call on fresh ranks, each as `asked`; `pickled()` gives it as bytes, by rank."""
        check_room(world_size)
        with self._lock:
            if asked.network != self.network:
                return self._on(asked.network).run(world_size, asked, pickled)
            self.start()
            calls = pickled()
            self._client.wait_until_ready()  # which no deadline counts
            spec = {
                "world_size": world_size,
                "threads": asked.threads_per_rank,
                "setup": asked.setup,
                "backend": self._backend(asked.backend, world_size),
            }
            seconds = asked.deadline
            if self.left is not None:
                seconds = max(0.0, min(seconds, self.left))
            deadline = Deadline(seconds)
            how = {"alone": asked.alone, "memory": bool(asked.memory)}
            return self._launch(spec, calls, deadline, how)

    def client_behind(self, walls: Open) -> ForkClient:
        """A fork server behind these walls, forked from this launcher's in milliseconds.

        Nothing started there outlives its `close`.

        Raises:
            SandboxError: the kernel refuses.
        """
        with self._lock:
            self.start()
            try:
                return self._client.fresh(walls=walls)
            except LaunchError as error:
                words = f"the kernel refuses fresh namespaces for a question: {error}"
                raise SandboxError(words) from None

    def _launch(
        self, spec: dict[str, Any], calls: list[bytes], deadline: Deadline, how: dict[str, bool]
    ) -> Run:
        """One team of ranks, from its request to its end."""
        team, members = self._take_team(spec, deadline)
        place = self.network or self.walls
        try:
            before = self._client.count() if place is not OPEN else {}
            self._request(members, calls, how)
            run = self._supervised(team, members, deadline)
            for name, value in place.counted(before, self._client.count()) if before else ():
                setattr(run, name, value)
            return run
        finally:
            self._client.end_team(team, members)
            self._warm_up(spec)
            self._used = time.monotonic()

    def _on(self, network: VirtualNetwork) -> Launcher:
        """The launcher whose ranks live on `network`; the last few are kept."""
        with self._lock:
            self.start()
            child = self._networks.pop(network, None)
            if child is None or not child._is_alive():
                child = Launcher()
                child.walls, child.network, child.left = self.walls, network, self.left
                child.cells = self.cells
                try:
                    child._client = self._client.fresh(network=network)
                except LaunchError as error:
                    words = f"no virtual network can be made here: {error}"
                    raise NetworkError(words) from None
            while len(self._networks) >= NETWORKS_KEPT:
                self._networks.pop(next(iter(self._networks))).close()
            self._networks[network] = child
            return child

    def _is_alive(self) -> bool:
        """Whether the fork server still answers."""
        with contextlib.suppress(LaunchError):
            return bool(self._client.count())
        return False

    def start(self) -> None:
        """Start the fork server, unless it runs. It imports torch: a second or two."""
        with self._lock:
            if self._client is not None and not self._client.is_usable():
                self.close()
            if self._client is None:
                self._client = ForkClient.start(self.command)
            self._used = time.monotonic()
            if self.idle_seconds and not (self._watch and self._watch.is_alive()):
                self._watch = threading.Thread(target=self._end_when_idle, daemon=True)
                self._watch.start()

    def _end_when_idle(self) -> None:
        """The thread: it holds the lock while it ends the processes, so no launch is under way."""
        while True:
            with self._lock:
                left = self._used + self.idle_seconds - time.monotonic()
                if left <= 0 or self._client is None:
                    self.close()
                    self._watch = None
                    return
            time.sleep(left)

    def close(self) -> None:
        """End every process this launcher started; return when they are gone."""
        with self._lock:
            for _, members in self._warm.values():
                for member in members:
                    member.close()
            self._warm.clear()
            for child in self._networks.values():
                child.close()
            self._networks.clear()
            if self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _backend(self, backend: str, world_size: int) -> str:
        if self.network is not None and backend == "auto":
            return "gloo"
        return self.walls.backend(backend, world_size)

    def _request(self, members: list[Member], calls: list[bytes], how: dict[str, bool]) -> None:
        there = place(self._client.environ) if self.walls.trusted else None
        send_calls(members, {"place": there, **how}, calls)

    def _supervised(self, team: int, members: list[Member], deadline: Deadline) -> Run:
        supervisor = Supervisor(
            members,
            lambda: self._client.exits_of(team),
            lambda: self._client.dump_stacks(team),
            self.walls,
            self.cells,
        )
        if not self.walls.trusted:
            deadline.waited = lambda: self._client.waited(team)
        try:
            return supervisor.run(self._client.connection, deadline)
        finally:
            with contextlib.suppress(LaunchError):  # it has just ended
                deadline.ask()
            if self.left is not None:
                self.left -= deadline.spent

    def _take_team(self, spec: dict[str, Any], deadline: Deadline) -> tuple[int, list[Member]]:
        team = self._warm.pop(_key(spec), None)
        if team is not None:
            with contextlib.suppress(SandboxError):  # a rank could not be forked
                if not self._client.exits_of(team[0]):
                    return team
            self._client.end_team(*team)
        return self._client.fork_team(spec, deadline)

    def _warm_up(self, spec: dict[str, Any]) -> None:
        """Fork the ranks that the next launch of this kind will use; they connect and wait."""
        kept = self.walls is OPEN and self.network is None and spec["setup"]
        kept = kept and spec["world_size"] <= WARM_RANKS
        if not kept or _key(spec) in self._warm:
            return
        with contextlib.suppress(LaunchError):
            while len(self._warm) >= WARM_TEAMS:
                self._client.end_team(*self._warm.pop(next(iter(self._warm))))
            self._warm[_key(spec)] = self._client.fork_team(spec)


def _key(spec: dict[str, Any]) -> tuple:
    return (spec["world_size"], spec["backend"], spec["threads"], spec["setup"])
