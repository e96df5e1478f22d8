"""Starts ranks, hands them their call, and waits for what comes back: one Launcher per place."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from byhand.runtime.errors import LaunchError, NetworkError, SandboxError
from byhand.runtime.process.client import ForkClient, ForkedTeam
from byhand.runtime.process.member import Deadline, send_calls
from byhand.runtime.process.place import OPEN, Place
from byhand.runtime.process.whereabouts import whereabouts
from byhand.runtime.run import Options, Run
from byhand.runtime.system import check_room, no_files_left
from byhand.runtime.trace.log import long_capacity
from byhand.runtime.watch.supervise import Supervisor

if TYPE_CHECKING:
    from byhand.runtime.network.virtual import VirtualNetwork

WARM_TEAMS, WARM_RANKS = 2, 64  # so many are kept, of at most so many ranks together
NETWORKS_KEPT = 2


class Launcher:
    """Starts ranks from one fork server; closing it leaves no process behind.

    It starts the server itself, with `command` put before the server's own (a sandbox). After
    `idle_seconds` without a launch every process is ended, and the next launch starts them anew.
    Or it is given a `client` of a server, whose ranks live in `place`; there, none wait for the
    next launch.

    Of ranks that are not trusted, somebody measures the time: a deadline is then one of time that
    they had, and not of what other programs took. All launches share the seconds `left`, if any.
    `cells`: whose lines their errors may show, by label.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        idle_seconds: float | None = None,
        *,
        client: ForkClient | None = None,
        place: Place = OPEN,
        cells: Mapping[str, str] | None = None,
        left: float | None = None,
    ):
        self.command = list(command)
        self.idle_seconds = idle_seconds
        self.place = place
        self.cells = {} if cells is None else cells
        self.left = left
        self._client = client
        self._warm_teams = WARM_TEAMS if client is None else 0
        self._warm: dict[tuple, ForkedTeam] = {}
        self._networks: dict[VirtualNetwork, Launcher] = {}
        self._lock = threading.RLock()
        self._used = 0.0
        self._watch: threading.Thread | None = None

    def run(self, world_size: int, asked: Options, pickled: Callable[[], list[bytes]]) -> Run:
        """Run a call on fresh ranks, each as `asked`; `pickled()` gives it as bytes, by rank."""
        check_room(world_size)
        with self._lock:
            if asked.network is not None:
                on_wires = self._on(asked.network)
                return on_wires.run(world_size, replace(asked, network=None), pickled)
            self.start()
            calls = pickled()
            self._client.wait_until_ready()  # which no deadline counts
            if asked.may_leave:
                self._client.load_for_programs()  # nor this
            spec = {
                "world_size": world_size,
                "threads": asked.threads_per_rank,
                "setup": asked.setup,
                "backend": self.place.backend(asked.backend, world_size) if asked.setup else "",
            }
            if asked.older is not None:
                spec["log_bytes"] = long_capacity()
            seconds = asked.deadline
            if self.left is not None:
                seconds = max(0.0, min(seconds, self.left))
            deadline = Deadline(seconds)
            how = {"alone": asked.alone, "memory": bool(asked.memory)}
            how["may_leave"] = asked.may_leave
            return self._launch(spec, calls, deadline, how, asked)

    def client_in(self, place: Place) -> ForkClient:
        """A fork server whose ranks live in `place`, forked from this launcher's in milliseconds.

        Nothing started there outlives its `close`.

        Raises:
            SandboxError: the kernel refuses.
        """
        with self._lock:
            self.start()
            try:
                return self._client.fresh(place)
            except LaunchError as error:
                words = f"the kernel refuses fresh namespaces for a question: {error}"
                raise SandboxError(words) from None

    def _launch(
        self,
        spec: dict[str, Any],
        calls: list[bytes],
        deadline: Deadline,
        how: dict[str, bool],
        asked: Options,
    ) -> Run:
        """One team of ranks, from its request to its end."""
        there = whereabouts(self._client.environ) if self.place.trusted else None
        team = self._take_team(spec, deadline)
        try:
            before = self._count()
            send_calls(team.members, {"there": there, **how}, calls, asked.streams)
            run = self._supervised(team, deadline, asked)
            return replace(run, **self.place.counted(before, self._count()))
        finally:
            team.end()
            self._warm_up(spec, team)
            self._used = time.monotonic()

    def _count(self) -> dict[str, Any]:
        """What the ranks' network has carried so far, if it is their own."""
        return self._client.count() if self.place.isolate else {}

    def _on(self, network: VirtualNetwork) -> Launcher:
        """The launcher whose ranks live on `network`; the last few are kept.

        Raises:
            NetworkError: the kernel refuses; or these ranks live behind walls, where there is none.
        """
        self.start()
        child = self._networks.pop(network, None)
        if child is None or not child._is_alive():
            child = self._laid(network)
        while len(self._networks) >= NETWORKS_KEPT:
            self._networks.pop(next(iter(self._networks))).close()
        self._networks[network] = child
        return child

    def _laid(self, network: VirtualNetwork) -> Launcher:
        from byhand.runtime.network.wires import Wires  # only where there is a network

        refused = "no virtual network can be made here"
        if not self.place.trusted:
            raise NetworkError(f"{refused}: these ranks live behind walls")
        wires = Wires(network)
        try:
            return Launcher(client=self._client.fresh(wires), place=wires)
        except LaunchError as error:
            raise NetworkError(f"{refused}: {error}") from None

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
            for team in self._warm.values():
                team.close()
            self._warm.clear()
            for child in self._networks.values():
                child.close()
            self._networks.clear()
            if self._client is not None:
                self._client.close()
                self._client = None

    def leave(self) -> None:
        """Close, at the program's end: what another thread launches ends now, by SandboxError."""
        client = self._client
        if client is not None and client.owner == os.getpid():
            if self._lock.acquire(blocking=False):
                self._lock.release()
            else:
                client.hang_up()
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _supervised(self, team: ForkedTeam, deadline: Deadline, asked: Options) -> Run:
        if not self.place.trusted:
            deadline.waited = team.waited
        try:
            return self._supervisor(team, asked).run(deadline)
        finally:
            with contextlib.suppress(LaunchError):  # it has just ended
                deadline.ask()
            if self.left is not None:
                self.left -= deadline.spent

    def _supervisor(self, team: ForkedTeam, asked: Options) -> Supervisor:
        return Supervisor(team, self.place, self.cells, asked.older, asked.may_leave)

    def _take_team(self, spec: dict[str, Any], deadline: Deadline) -> ForkedTeam:
        team = self._warm.pop(_key(spec), None)
        if team is not None:
            with contextlib.suppress(SandboxError):  # a rank could not be forked
                if not team.exits():
                    return team
            team.end()
        while True:
            try:
                return self._client.fork_team(spec, deadline)
            except OSError as error:
                if error.errno != errno.EMFILE:
                    raise
                if not self._warm:
                    raise LaunchError(no_files_left(spec["world_size"])) from None
            while self._warm:  # who waits gives up the files that are open for it
                self._warm.popitem()[1].end()

    def _warm_up(self, spec: dict[str, Any], last: ForkedTeam) -> None:
        """Fork the ranks that the next launch of this kind will use; they connect and wait.

        What the last ones had to load, all that are forked from now on have.
        """
        kept = self._warm_teams and spec["setup"] and spec["world_size"] <= WARM_RANKS
        with contextlib.suppress(LaunchError, OSError):
            if self.place.trusted:
                last.hand_on()
            if not kept or _key(spec) in self._warm:
                return
            while len(self._warm) >= self._warm_teams or self._waiting(spec) > WARM_RANKS:
                self._warm.pop(next(iter(self._warm))).end()
            self._warm[_key(spec)] = self._client.fork_team(spec)

    def _waiting(self, spec: dict[str, Any]) -> int:
        """How many ranks wait, with those that one more team adds."""
        return spec["world_size"] + sum(len(team.members) for team in self._warm.values())


def _key(spec: dict[str, Any]) -> tuple:
    return (spec["world_size"], spec["backend"], spec["threads"], spec["setup"])
