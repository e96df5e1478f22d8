"""A team: the ranks of one launch, as the process that launched them has them."""

from __future__ import annotations

import signal
import socket
from typing import Protocol

from byhand.runtime.process.member import Member

STACK_SECONDS = 10.0  # a busy machine was seen to let one wait for two


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
        """Let every live rank write its Python stack; the seconds each computed or waited to.

        Returns when all have written, or after STACK_SECONDS: one that is stopped never does.
        """

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Send the ranks a signal; SIGINT is the stop button."""

    def end(self) -> None:
        """Kill the ranks and everything they started; return when it is gone."""
