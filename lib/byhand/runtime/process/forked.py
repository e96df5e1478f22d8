"""A fork server without a start: one forked from a process that has imported torch already."""

from __future__ import annotations

import os
import socket

from byhand.runtime.process import server
from byhand.runtime.process.client import ForkClient

HELLO_SECONDS = 60.0


def fork_server(*closed: int) -> ForkClient:
    """Fork one that keeps none of the descriptors `closed`, from a process of one thread."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        for descriptor in (ours.detach(), *closed):
            os.close(descriptor)
        server.Server(theirs).serve()
        os._exit(0)
    theirs.close()
    client = ForkClient(ours)
    client.expect("hello", HELLO_SECONDS)
    return client
