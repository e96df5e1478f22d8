"""A save that is killed before each of its calls to the disk, and what is found afterwards."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from byhand.runtime import RankError, launch

CALLS = ("open", "write", "fsync", "mkdir", "rename", "unlink", "write_record", "write_end_of_file")


class Moment(NamedTuple):
    """A process was killed before this call; `found`: what reading gave afterwards."""

    call: str
    found: Any


def killed_at_each_call(
    save: Callable[[Path], None], find: Callable[[Path], Any], prepare: Callable[[Path], None]
) -> list[Moment]:
    """Kill a process before its first, second, ... call of CALLS, each time in a new folder.

    prepare: makes the folder's old checkpoint. save: the new one. find: what there is afterwards.
    The last moment is that of the process that lived.
    """
    moments = []
    for number in itertools.count():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "checkpoints"
            folder.mkdir()
            prepare(folder)
            log = Path(name) / "last call"
            try:
                launch(_save_until, 1, (save, folder, log, number))
                return [*moments, Moment("the end", find(folder))]
            except RankError:
                moments.append(Moment(log.read_text(), find(folder)))


def _save_until(rank: int, world_size: int, save, folder: Path, log: Path, number: int) -> None:
    """Save, and die before that call to the disk."""
    calls = itertools.count()

    def watch(frame: Any, event: str, function: Any) -> None:
        name = getattr(function, "__name__", "")
        if event == "c_call" and name in CALLS and next(calls) == number:
            log.write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    save(folder)
    sys.setprofile(None)
