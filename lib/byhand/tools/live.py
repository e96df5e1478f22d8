"""What ranks print, on this process's own output as it comes, each line behind its rank's number.

A carriage return begins a line anew, as progress bars do: the bar is shown at once, and the next
one, whoever's it is, is written over it. Any other text that meets an unfinished line begins one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import selectors
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

CHUNK = 1 << 16
PAUSE = 0.1  # seconds after which an unfinished line is shown
LAST_SECONDS = 5.0  # without a word of ranks that have all ended, after which no more is waited for
_PIECE = re.compile(rb"\r?\n|\r|[^\r\n]+")


@dataclass
class Screen:
    """Where text goes. `line`: whose text stands on the last line; None where that is empty.

    >>> screen = Screen(lambda data: print(data.decode(), end=""))
    >>> screen.show(0, b"loss 1"); screen.show(1, b"loss 2\\n"); screen.show(0, b"\\nend\\n")
    [0] loss 1
    [1] loss 2
    [0] end
    """

    write: Callable[[bytes], None]
    line: int | None = None
    _begins: bool = True  # the next text on this line is its first
    _cut: set[int] = field(default_factory=set)  # whose line another's text has ended

    def show(self, rank: int, data: bytes) -> None:
        """Write what a rank printed."""
        self.write(b"".join(self._shown(rank, piece) for piece in _PIECE.findall(data)))

    def _shown(self, rank: int, piece: bytes) -> bytes:
        if piece == b"\r":
            self._cut -= {rank}
            self.line, self._begins = rank, True
            return piece
        before = b""
        if self.line not in (None, rank):
            self._cut |= {self.line}
            before = self.end_line()
        if piece.endswith(b"\n"):
            if rank in self._cut and self.line is None:
                self._cut -= {rank}
                return before
            self.line, first = None, self._begins
            self._begins = True
            return before + (b"[%d]" % rank if first else b"") + b"\n"
        self._cut -= {rank}
        before += b"[%d] " % rank if self._begins else b""
        self.line, self._begins = rank, False
        return before + piece

    def end_line(self) -> bytes:
        """What ends the last line, if anything stands there."""
        unfinished, self.line, self._begins = self.line is not None, None, True
        return b"\n" if unfinished else b""


class LiveOutput:
    """Pipes for the standard output and error of so many ranks: `streams`, as Options has them.

    While entered, a thread passes on what comes; at the end, all that has come by then, however
    slowly it is read. `unread`: why this process's own output takes no more, if so: a
    BrokenPipeError where nobody reads it, as where `head` has seen enough.
    """

    def __init__(self, world_size: int):
        self.streams: list[tuple[int, int]] = []
        self.unread: OSError | None = None
        self._showing, self._num_shown = False, 0  # pieces that came
        self._tails: dict[int, tuple[bytes, float]] = {}  # by pipe, a line so far, and since when
        self._selector = selectors.DefaultSelector()
        screens = _screens()
        for rank in range(world_size):
            pipes = [os.pipe(), os.pipe()]
            for (read, _), screen in zip(pipes, screens, strict=True):
                self._selector.register(read, selectors.EVENT_READ, (rank, screen))
            self.streams.append((pipes[0][1], pipes[1][1]))
        self._screens = screens
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> LiveOutput:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """The ranks have ended, and so the pipes do, when this process has closed its ends."""
        for writes in self.streams:
            for write in writes:
                os.close(write)
        shown = -1  # what a rank left behind may hold a pipe for ever
        while self._thread.is_alive() and (self._showing or self._num_shown > shown):
            shown = self._num_shown
            self._thread.join(LAST_SECONDS)
        for screen in self._screens:
            with contextlib.suppress(OSError):
                screen.write(screen.end_line())

    def _pass_on(self) -> None:
        while self._selector.get_map():
            ready = {key.fd for key, _ in self._selector.select(PAUSE if self._tails else None)}
            shown_by = time.monotonic() - PAUSE
            late = {read for read, (_, since) in self._tails.items() if since <= shown_by}
            for read in [*ready, *(late - ready)]:
                self._showing = True
                rank, screen = self._selector.get_key(read).data
                data = os.read(read, CHUNK) if read in ready else b""
                try:
                    self._take(read, rank, screen, data)
                except OSError as error:  # our own output takes no more: let the rank hear of that
                    self.unread, data = error, b""
                self._num_shown, self._showing = self._num_shown + 1, False
                if read in ready and not data:
                    self._tails.pop(read, None)
                    self._selector.unregister(read)
                    os.close(read)

    def _take(self, read: int, rank: int, screen: Screen, data: bytes) -> None:
        """Show whole lines and bars at once, and an unfinished line when no more comes."""
        before, since = self._tails.pop(read, (b"", time.monotonic()))
        text = before + data
        whole, end, tail = text.rpartition(b"\n")
        if b"\r" in tail or len(tail) >= CHUNK or not data:
            whole, end, tail = text, b"", b""
        screen.show(rank, whole + end)
        if tail:
            self._tails[read] = tail, time.monotonic() if end else since


def _screens() -> tuple[Screen, Screen]:
    """Of this process's standard output and error: one, where they are the same."""
    out, error = (Screen(functools.partial(_write, fd)) for fd in (1, 2))
    return (out, out) if os.path.sameopenfile(1, 2) else (out, error)


def _write(fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # somebody made it so, and reads slowly
            select.select([], [fd], [])
