"""On a program's rank: torch as torchrun and the ledger have it. Program calls `prepare`.

It is a file of its own because who launches a Program needs no torch.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from byhand.runtime.process.world import nccl_needs_more
from byhand.runtime.trace import recorder

rendezvous: Any = importlib.import_module(
    "torch.distributed.rendezvous"
)  # dist has a function so named
_AGENT = "TORCHELASTIC_USE_AGENT_STORE"  # whether ranks find the store that they meet in open
_OWN_PORT = (
    "byhand: the ranks meet at port {}, which the program names itself. Here rank 0 opens it; under"
    " torchrun nobody does, and all wait in vain. For both, leave MASTER_ADDR and MASTER_PORT as"
    " they come, and give init_process_group no init_method."
)
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
    each has a part of the store to itself. Where it names a port of its own, it has its own store.
    """
    port = os.environ["MASTER_PORT"]
    if rank == 0:
        address = os.environ["MASTER_ADDR"], int(port)
        _held.append(dist.TCPStore(*address, world_size, is_master=True, wait_for_workers=False))
    os.environ[_AGENT] = "True"
    handlers, numbers = rendezvous._rendezvous_handlers, itertools.count()

    def join_afresh(
        join: Callable[..., Any], url: str, *args: Any, **kwargs: Any
    ) -> Iterator[tuple[dist.Store, int, int]]:
        """Join; at the port of the launcher's store under a name that is new each time."""
        asked = str(urlsplit(url).port or os.environ.get("MASTER_PORT"))
        if asked == port:
            store, *numbered = next(join(url, *args, **kwargs))
            yield (dist.PrefixStore(f"group {next(numbers)}", store), *numbered)
            return
        with _no_agent(rank, asked):
            joined = next(join(url, *args, **kwargs))
        yield joined

    for scheme in ("env", "tcp"):
        handlers[scheme] = functools.partial(join_afresh, handlers[scheme])


@contextlib.contextmanager
def _no_agent(rank: int, port: str) -> Iterator[None]:
    """Have torch's rank 0 open the store at a port of the program's, and say that it does.

    Programs for mp.spawn name one. Under torchrun each rank would wait for an agent to open it.
    """
    if os.environ.get(_AGENT) != "True":  # the program knows
        yield
        return
    if rank == 0:
        print(_OWN_PORT.format(port), file=sys.stderr)
    os.environ[_AGENT] = "False"
    try:
        yield
    finally:
        os.environ[_AGENT] = "True"


def _with_a_backend(make: Callable[..., Any], stand_in: str | None) -> Callable[..., Any]:
    """A function of torch's that makes a group, and where it is to be of NCCL, one that can be."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        """Make the group, of gloo where NCCL is asked for and something is to stand in."""
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
        """Compile, and leave the calls of byhand.runtime out of it."""
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
