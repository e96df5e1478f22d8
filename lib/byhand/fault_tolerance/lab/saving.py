"""A save that is killed before each of its calls to the disk, and what is found afterwards."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from byhand.runtime import launch

Way = Callable[[Path], Any]
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

    Raises:
        RankError: the save failed by itself; the sentence ends with what it raised.
    """
    return launch(_every_moment, 1, (save, find, prepare), setup=False).results[0]


def _every_moment(rank: int, world_size: int, save: Way, find: Way, prepare: Way) -> list[Moment]:
    moments: list[Moment] = []
    while not moments or moments[-1].call != "the end":
        with tempfile.TemporaryDirectory() as name:
            folder, log = Path(name) / "checkpoints", Path(name) / "last call"
            folder.mkdir()
            prepare(folder)
            log.write_text("it left no traceback")
            child = os.fork()
            if child == 0:
                _save_until(save, folder, log, len(moments))
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status) and os.WEXITSTATUS(status):
                why = log.read_text().splitlines()[-1]
                raise RuntimeError(f"the save failed by itself, before it was killed: {why}")
            call = log.read_text() if os.WIFSIGNALED(status) else "the end"
            moments.append(Moment(call, find(folder)))
    return moments


def _save_until(save: Callable[[Path], None], folder: Path, log: Path, number: int) -> None:
    """Save, and die before that call to the disk; else end. Never returns."""
    calls = itertools.count()

    def watch(frame: Any, event: str, function: Any) -> None:
        """Die at the call of that number."""
        name = getattr(function, "__name__", "")
        if event == "c_call" and name in CALLS and next(calls) == number:
            log.write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)

    failed = True
    try:
        sys.setprofile(watch)
        try:
            save(folder)
        finally:
            sys.setprofile(None)
        failed = False
    except BaseException:
        log.write_text(traceback.format_exc(), errors="backslashreplace")
    finally:
        os._exit(failed)
