"""On a rank: be what `python script.py` or `python -m module` would be under torchrun.

A Program is a function like any other that `launch` runs, with setup=False: the program joins its
process groups itself. Read `__call__` first.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import io
import os
import runpy
import signal
import sys
import threading
from dataclasses import dataclass
from types import ModuleType

COMPILER = "torch._dynamo"  # torch's; who uses an optimizer of torch loads it, which takes a second


@dataclass(frozen=True)
class Program:
    """A script, or with `is_module` a module, and its arguments.

    `backend` stands in for NCCL where the program asks for that. `ranks_per_host`: None where all
    ranks are on one.
    """

    name: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    backend: str | None = None
    ranks_per_host: int | None = None

    def __call__(self, rank: int, world_size: int) -> None:
        """Run it; where it does not raise, to the end of its threads and of its exit functions.

        The exit functions of a rank that raises run once it has told what went wrong, for 5 s at
        most (watch.supervise.LEAVE_SECONDS); those of the others, which are then killed, do not.
        Where somebody stops the command, each rank is sent the signal, and has as long to leave.

        Raises:
            SystemExit: it asked to end with a status that is not 0. Whatever else it raised.
        """
        from byhand.runtime.torchrun import prepare

        os.environ.update(torchrun_environment(rank, world_size, self.ranks_per_host))
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        prepare(rank, world_size, self.backend)
        sys.argv[:] = [self.name, *self.arguments]
        ended: SystemExit | None = None
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            try:
                _run_module(self.name) if self.is_module else _run_file(self.name)
            except SystemExit as error:
                ended = error
            _leave()
        finally:  # who has ended is not there to be told
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
        if ended is not None and ended.code:
            raise ended


def torchrun_environment(
    rank: int, world_size: int, ranks_per_host: int | None = None
) -> dict[str, str]:
    """What torchrun tells a rank, less the address, which every rank of `launch` has. Pure."""
    here = ranks_per_host or world_size
    numbers = {
        "RANK": rank,
        "WORLD_SIZE": world_size,
        "LOCAL_RANK": rank % here,
        "LOCAL_WORLD_SIZE": here,
        "GROUP_RANK": rank // here,
        "GROUP_WORLD_SIZE": world_size // here,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": world_size,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
    }
    texts = {"ROLE_NAME": "default", "TORCHELASTIC_RUN_ID": "none"}
    return {name: str(number) for name, number in numbers.items()} | texts


def _run_file(name: str) -> None:
    """As `python name` does: `__main__` is the module that it becomes, also for pickles."""
    path = os.path.abspath(name)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = path
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    exec(code, main.__dict__)


def _run_module(name: str) -> None:
    """As `python -m name` does."""
    sys.path.insert(0, os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _leave() -> None:
    """What Python does at the end of a program, which a rank outlives by a little."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as multiprocessing has its children do
    run_exit_functions()


def run_exit_functions() -> None:
    """What the program registered for its end, each once, and what is still to be printed."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the program may have put anything in its place
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # what was printed in C
