"""An asyncio loop for ranks that may open no socket but TCP's: it wakes itself through a pipe."""

import asyncio
import os


class _End:
    """One end of a pipe, with what a loop asks of the socket it would have instead."""

    def __init__(self, descriptor: int):
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def recv(self, num_bytes: int) -> bytes:
        return os.read(self._descriptor, num_bytes)

    def send(self, data: bytes) -> int:
        return os.write(self._descriptor, data)

    def close(self) -> None:
        os.close(self._descriptor)


class _Loop(asyncio.SelectorEventLoop):
    def _make_self_pipe(self) -> None:
        self._ssock, self._csock = map(_End, os.pipe())
        self._internal_fds += 1
        self._add_reader(self._ssock.fileno(), self._read_from_self)


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop()


def without_sockets() -> None:
    """From now on asyncio.run and its like work in this process where socketpair is refused."""
    asyncio.set_event_loop_policy(_Policy())
