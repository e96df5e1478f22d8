"""On a rank: be what `python script.py` or `python -m module` would be under torchrun.

A Program is a function like any other that `launch` runs, with setup=False: the program joins its
process groups itself. Read `__call__` first.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
import inspect
import io
import itertools
import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from byhand.runtime.process.world import nccl_needs_more
from byhand.runtime.trace import recorder

rendezvous: Any = importlib.import_module(
    "torch.distributed.rendezvous"
)  # dist has a function so named
_held: list[dist.Store] = []  # until this rank is ended


class NCCLError(RuntimeError):
    """A program asks for NCCL where it cannot run."""


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

        Raises:
            SystemExit: it asked to end with a status that is not 0. Whatever else it raised.
        """
        os.environ.update(torchrun_environment(rank, world_size, self.ranks_per_host))
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        for name in ("init_process_group", "new_group"):
            for module in (dist, c10d):
                setattr(module, name, _with_a_backend(getattr(module, name), self.backend))
        _meet_as_under_torchrun(rank, world_size)
        torch.compile = _not_of_ours(torch.compile)
        torch.autograd._engine_run_backward = _seen_to_wait(torch.autograd._engine_run_backward)
        if "numpy.random" in sys.modules:  # it came with the fork, the same on all ranks
            sys.modules["numpy.random"].seed()
        sys.argv[:] = [self.name, *self.arguments]
        ended: SystemExit | None = None
        try:
            _run_module(self.name) if self.is_module else _run_file(self.name)
        except SystemExit as error:
            ended = error
        _leave()
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


def _meet_as_under_torchrun(rank: int, world_size: int) -> None:
    """Have the ranks meet in a store that outlives every process group.

    torchrun's agent has one; here it is rank 0's. A program may leave its group and make another:
    each has a part of the store to itself.
    """
    if rank == 0:
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        _held.append(dist.TCPStore(*address, world_size, is_master=True, wait_for_workers=False))
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    handlers, numbers = rendezvous._rendezvous_handlers, itertools.count()
    join = handlers["env"]

    def join_afresh(*args: Any, **kwargs: Any) -> Iterator[tuple[dist.Store, int, int]]:
        store, *numbered = next(join(*args, **kwargs))
        yield (dist.PrefixStore(f"group {next(numbers)}", store), *numbered)

    handlers["env"] = join_afresh


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


def _with_a_backend(make: Callable[..., Any], stand_in: str | None) -> Callable[..., Any]:
    """A function of torch's that makes a group, and where it is to be of NCCL, one that can be."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            asked = signature.bind(*args, **kwargs)
        except TypeError:
            return make(*args, **kwargs)  # which says so itself
        if "nccl" in str(asked.arguments.get("backend") or "").lower():
            if stand_in is not None:
                asked.arguments["backend"] = stand_in
            elif needs := nccl_needs_more(int(os.environ["LOCAL_WORLD_SIZE"])):
                raise NCCLError(f"the program asks for NCCL, which {needs}")
        return make(*asked.args, **asked.kwargs)

    return made


def _not_of_ours(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile, which is not to trace what records a call."""

    @functools.wraps(compile_)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        from torch._dynamo import trace_rules  # not before a program asks for it: it takes seconds

        trace_rules.add("byhand.runtime")
        return compile_(*args, **kwargs)

    return compiled


def _seen_to_wait(run_backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass, at whose end DDP may have waited."""

    @functools.wraps(run_backward)
    def run(*args: Any, **kwargs: Any) -> Any:
        go_on = functools.partial(run_backward, *args, **kwargs)
        return go_on() if recorder.active is None else recorder.active.run_backward(go_on)

    return run


def _leave() -> None:
    """What Python does at the end of a program, which a rank outlives by a little."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as multiprocessing has its children do
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the program may have put anything in its place
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # what was printed in C
