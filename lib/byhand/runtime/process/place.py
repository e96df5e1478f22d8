"""Where ranks live: all that differs between no walls, walls, and the wires of a virtual network.

A launcher is made with a Place; its fork server gets a copy, moves there, and hands it on to each
rank that it forks. So one class has methods that run in three processes, and says where. What needs
torch, a method loads itself: who launches may have no use for it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from byhand.runtime import pickling

if TYPE_CHECKING:
    from byhand.runtime.trace.log import LogWriter
    from byhand.runtime.trace.memory import HeldBytes


class Place:
    """No walls: ranks are processes of this machine like any other. Other places are of this kind.

    `isolate`: ranks live in namespaces of their own, whose network counts what it carries.
    `address`: that of rank 0. `trusted`: what ranks say is believed, and they are where the
    notebook is. `limits` of a rank, by name. `look_seconds`: how often the fork server is to
    `weigh`; None: never.
    """

    isolate: bool = False
    address = "127.0.0.1"
    trusted = True
    limits: Mapping[str, int] = {}
    look_seconds: float | None = None

    def backend(self, backend: str, world_size: int) -> str:
        """In the notebook: the backend of a launch that asks for this one.

        Raises:
            ValueError: it cannot run here.
        """
        from byhand.runtime.process.world import choose_backend

        return choose_backend(backend, world_size)

    def overweight(self, world_size: int) -> str:
        """In the notebook: why a rank fails, if all together hold more memory than they may."""
        return ""

    def counted(self, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
        """In the notebook: what two counts tell of the run between them, by fields of Run."""
        return {}

    def value(self, fd: int, at: int) -> Any:
        """In the notebook: what `dump` wrote from byte `at` on.

        Raises:
            ValueError: it is no value. TypeError: it cannot be made anew here.
        """
        return pickling.read(fd, at)

    def enter(self) -> Place:
        """In a forked fork server: move there; the place as this server knows it from then on.

        Raises:
            OSError: the kernel refuses; the message says which step.
        """
        return self

    def count(self) -> dict[str, Any]:
        """In the fork server: what the network of its ranks has carried, if it is their own."""
        return {}

    def weigh(self, world_size: int) -> None:
        """In the fork server: kill so many ranks if together they hold more than they may."""

    def main(self, fds: list[int], spec: dict[str, Any], be_a_rank: Callable[..., None]) -> None:
        """In a process that the fork server forked: be what is asked for here, which is a rank."""
        be_a_rank(fds, spec, self)

    def close_in(self, rank: int, world_size: int) -> None:
        """On a rank, before it joins the others: move to its host, give up what it may not have."""

    def load(self, data: bytes) -> Any:
        """On a rank: the function and the arguments that came as `data`."""
        return pickle.loads(data)

    def recorded(self, log: LogWriter, memory: HeldBytes | None) -> Any:
        """On a rank: what the function runs in."""
        from byhand.runtime.trace.recorder import Recorder

        return Recorder(log, memory)

    def dump(self, value: Any, fd: int) -> None:
        """On a rank: write what the function returned at the end of a file.

        Raises:
            TypeError: it cannot travel; the message says why.
        """
        pickling.write(value, fd)


OPEN = Place()
