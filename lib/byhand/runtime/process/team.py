"""A team: the ranks of one launch, as the process that launched them has them."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, Any, Protocol

from byhand.runtime.errors import SandboxError
from byhand.runtime.process.member import Member

if TYPE_CHECKING:
    from byhand.runtime.process.client import ForkClient


class Team(Protocol):
    """What a supervisor asks of ranks, wherever they live.

    `members`: this process's ends of each, by rank. `news`: a socket that can be read when one of
    them may have ended.
    """

    members: list[Member]
    news: socket.socket

    def exits(self) -> dict[int, int]:
        """{rank: exit code} of those that have ended.

        Raises:
            LaunchError: nobody can tell any more.
        """

    def stacks(self) -> dict[int, float]:
        """Let every live rank write its Python stack; the seconds each computed or waited to."""

    def end(self) -> None:
        """Kill the ranks and everything they started; return when it is gone."""


class ForkedTeam(Team):
    """Ranks that a fork server of this machine forks; ForkClient.fork_team makes one."""

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
        return {rank: sum(times) for rank, times in self._signal(signal.SIGUSR1).items()}

    def waited(self) -> float:
        """The most seconds that a rank waited for a processor."""
        return max((waited for _, waited in self._signal(0).values()), default=0.0)

    def interrupt(self) -> None:
        """Press the stop button."""
        self._signal(signal.SIGINT)

    def _signal(self, number: int) -> dict[int, list[float]]:
        """Signal the ranks, or with 0 do not; the seconds that each computed, and waited to."""
        times = self.client.ask("times", do="signal", team=self.number, signal=number)
        return {int(rank): seconds for rank, seconds in times.items()}

    def close(self) -> None:
        """Close this process's ends of the ranks."""
        for member in self.members:
            member.close()

    def end(self) -> None:
        """As Team says; a server that does not say in time that it is done is ended itself."""
        self.close()
        self.client.end(self.number)
