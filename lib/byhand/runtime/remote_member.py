"""A rank on another node, as the supervisor sees it: what it wrote there is copied into files here.

A thread feeds it; the supervisor reads it as it reads a rank of this machine.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any

from byhand.runtime.process.member import Member
from byhand.runtime.trace.log import append_log


class RemoteMember(Member):
    """One rank of a team on several nodes. Made by `create`, as any member is."""

    def attach(self, node: Any, ahead: float, wake: socket.socket) -> None:
        """Say where the rank is, how far that clock is ahead of ours, and what wakes its reader."""
        self.node = node
        self.log.clock_ahead = ahead
        self._wake = wake
        self._lock = threading.Lock()
        self._inbox = bytearray()
        self._ended = self._closed = False

    def feed(self, channel: str, data: bytes) -> None:
        """Take in what the rank wrote to its log, output or stack, or some of its reply."""
        with self._lock:
            if self._closed:
                return
            if channel == "reply":
                self._inbox += data
                self._ended = self._ended or not data
                with contextlib.suppress(BlockingIOError, BrokenPipeError):
                    self._wake.send(b".")
            else:
                fd = getattr(self, f"{channel}_fd")
                if channel == "log":
                    append_log(fd, data)
                else:
                    os.write(fd, data)

    def receive(self, max_bytes: int) -> bool:
        """Read some of the reply. False when nothing more will come."""
        self.control.recv(1 << 16)
        with self._lock:
            data, self._inbox = bytes(self._inbox), bytearray()
            ended = self._ended
        self.take(data, max_bytes)
        return not ended

    def close(self) -> None:
        """Close every descriptor; what comes later is dropped."""
        with self._lock:
            self._closed = True
            self._wake.close()
            super().close()
