"""How the processes of a launch talk: in three framings, and no fourth.

 1. A message: its length in four bytes, its bytes, and on a socket descriptors beside it. So a
    launching process and its fork server talk (pickles there, JSON back: server.py), and so a rank
    is given its call (JSON, and a file with what is pickled). On a cluster, a node's file is a row
    of them (slurm/node.py).
 2. A record, in a rank's log: trace/log.py.
 3. A header and what follows it, in a rank's result: the length of a JSON text in eight bytes, the
    text, raw bytes. A result's header tells of a value or an error, and what follows is the value:
    pickled; or behind walls, where nobody believes a pickle, headed bytes again (walls/codec.py).

What is no more than a wake-up is one byte on a socket: a rank's result is there.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from typing import Any, BinaryIO

MAX_MESSAGE = 1 << 20  # on a socket


def message(data: bytes) -> bytes:
    """Some bytes, framed as a message."""
    return len(data).to_bytes(4, "big") + data


def send_message(connection: socket.socket, data: bytes, fds: Iterable[int] = ()) -> None:
    """Send some bytes, as one message, and descriptors."""
    framed = message(data)
    sent = socket.send_fds(connection, [framed], list(fds))
    if sent < len(framed):  # sending nothing fails, too, where the reader has read and gone
        connection.sendall(framed[sent:])


def receive_message(connection: socket.socket, max_fds: int = 0) -> tuple[bytes, list[int]]:
    """The next message and its descriptors; b"" where no more will come.

    Waits for its beginning as long as the socket's time-out says, and then for the whole of it.
    One call takes it, so that the stop button loses a message or none, and never half of one.

    Raises:
        ConnectionError: the other side ended within it, or says more than MAX_MESSAGE bytes.
    """
    head = connection.recv(4, socket.MSG_PEEK)
    if not head:
        return b"", []
    connection.settimeout(None)
    length = int.from_bytes(head, "big")
    if length > MAX_MESSAGE:
        raise ConnectionError(f"a message of {length:,} bytes, where {MAX_MESSAGE:,} are allowed")
    framed, fds, _, _ = socket.recv_fds(connection, 4 + length, max_fds, socket.MSG_WAITALL)
    while len(framed) < 4 + length:  # descriptors end a call early, where the message is long
        if not (part := connection.recv(4 + length - len(framed))):
            raise ConnectionError("it ended in the middle of a message")
        framed += part
    return framed[4:], fds


def read_message(file: BinaryIO) -> bytes | None:
    """The next message of a file that grows; None where it is not there, or not whole yet."""
    head = file.read(4)
    data = file.read(int.from_bytes(head, "big"))
    return data if len(head) == 4 and len(data) == int.from_bytes(head, "big") else None


def headed(header: dict[str, Any]) -> bytes:
    """A header, framed: whatever is written after it follows it."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "big") + text
