"""On a program's rank: torch as torchrun and the ledger have it. Program calls `prepare`.

It is a file of its own because who launches a Program needs no torch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import os
from collections.abc import Callable, Iterator
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


def prepare(rank: int, world_size: int, stand_in: str | None) -> None:
    """Have torch find the other ranks, see what waits, and use `stand_in`, if any, for NCCL."""
    for name in ("init_process_group", "new_group"):
        for module in (dist, c10d):
            setattr(module, name, _with_a_backend(getattr(module, name), stand_in))
    _meet_as_under_torchrun(rank, world_size)
    torch.compile = _not_of_ours(torch.compile)
    torch.autograd._engine_run_backward = _seen_to_wait(torch.autograd._engine_run_backward)


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
