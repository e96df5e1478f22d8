"""What the fork server keeps of one launch: its ranks, where they meet, what they may hold.

A limit on memory binds one process, and only what is its own. A team is therefore weighed as a
whole, with all that its ranks started and the memory they share, every 50 ms. What a process had
from this one when it was forked weighs nothing.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from byhand.runtime.process.tree import descendants_of, memory_bytes
from byhand.runtime.walls.kernel_count import Counters

LOOK_SECONDS = 0.05


@dataclass
class Team:
    """The processes of one launch, or one fresh fork server."""

    port: socket.socket | None = None
    store: int = -1  # a memory file in which the ranks find each other
    before: Counters | None = None  # what had crossed this namespace's loopback before it
    most_bytes: int = 0  # of memory, for all ranks and what they start; 0: as they like
    ranks: dict[int, int] = field(default_factory=dict)  # process id -> rank

    def prepare(self, spec: dict[str, Any]) -> None:
        """Reserve what the ranks of this launch share, before the first of them is forked."""
        if self.port is not None:
            return
        self.port, self.store = reserve_port(), os.memfd_create("byhand store")
        self.before = Counters.read(self.store) if spec.get("private") else None
        limits = spec["limits"]
        if "device_bytes" not in limits:  # CUDA maps as much as the GPUs hold
            self.most_bytes = limits.get("memory_bytes", 0) * spec["world_size"]

    def close(self) -> None:
        """Give back what was reserved."""
        if self.port is not None:
            self.port.close()
            os.close(self.store)


class Scales:
    """Weighs what the fork server's processes hold together, now and then."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def too_much(self, team: Team) -> bool:
        """Whether it is time to look, and more is held than `team` may hold."""
        if not team.most_bytes or time.monotonic() < self._last + LOOK_SECONDS:
            return False
        self._last = time.monotonic()
        here = int(os.readlink("/proc/self"))  # by the numbers that /proc uses
        own = memory_bytes(here)
        held = (memory_bytes(pid) - own for pid in descendants_of(here))
        return sum(more for more in held if more > 0) > team.most_bytes


def reserve_port() -> socket.socket:
    """A free TCP port, kept from others but open to a rank's store, which listens on it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
