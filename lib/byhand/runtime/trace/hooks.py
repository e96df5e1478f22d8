"""Where the recorder listens: kernels of c10d operations, and a few functions, wrapped.

The kernels stand at the dispatch key BackendSelect, below autograd and DTensor and above the
backends, so they see each call on plain tensors once; every other operation runs as without them.
What dispatch does not show is wrapped: the moment a rank stands still (wait of a Work, or of its
future), the reduction (an opaque object in the dispatch), and the set-up calls init_process_group
and new_group.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from byhand.runtime.ledger import Call
from byhand.runtime.trace import recorder
from byhand.runtime.trace.calls import READERS
from byhand.words import counted

_REDUCTIONS = {  # by name, the position of `op`
    "all_reduce": 1,
    "all_reduce_coalesced": 1,
    "reduce": 2,
    "reduce_scatter": 2,
    "reduce_scatter_tensor": 2,
    "reduce_scatter_single": 2,
}
_libraries: list[torch.library.Library] = []  # kernels live as long as their library


def install() -> None:
    """Listen, from now on and in every process forked from this one, to the active Recorder."""
    known = torch._C._dispatch_get_all_op_names()
    functional = [name.split("::") for name in known if name.startswith("_c10d_functional::")]
    _register("c10d", [name for name in READERS if f"c10d::{name}" in known], "communicate")
    _register("_c10d_functional", [name for _, name in functional], "functional")
    dist.Work.wait = _recorded(dist.Work.wait, "wait")
    dist.Work.get_future = _recorded(dist.Work.get_future, "follow")
    torch._C.Future.wait = _recorded(torch._C.Future.wait, "wait_for_future")
    torch._C.Future.then = _recorded(torch._C.Future.then, "follow")
    for name, position in _REDUCTIONS.items():
        _wrap(name, functools.partial(_reducing, position=position))
    _wrap("_new_group_with_tag", functools.partial(_setting_up, describe=_new_group))
    _wrap("init_process_group", functools.partial(_setting_up, describe=_init))


def _register(namespace: str, names: list[str], method: str) -> None:
    """Kernels that hand each call to that method of the active Recorder."""
    library = torch.library.Library(namespace, "IMPL")
    _libraries.append(library)
    for name in names:
        overload, _, variant = name.partition(".")
        op = getattr(getattr(getattr(torch.ops, namespace), overload), variant or "default")
        kernel = functools.partial(_kernel, op, method)
        library.impl(name, kernel, "BackendSelect", with_keyset=True)


def _kernel(op: Any, method: str, keyset: Any, *args: Any) -> Any:
    if recorder.active is None:
        return op.redispatch(keyset & recorder.BELOW, *args)
    return getattr(recorder.active, method)(op, keyset, args)


def _wrap(name: str, wrapper: Callable[[Any], Any]) -> None:
    original = getattr(c10d, name, None)
    for module in (c10d, dist):
        if original is not None and hasattr(module, name):
            setattr(module, name, wrapper(original))


def _recorded(original: Any, method: str) -> Any:
    """A method of torch's that the active Recorder's own of this name is told of, and makes."""

    @functools.wraps(original)
    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.active is None:
            return original(self, *args, **kwargs)
        return getattr(recorder.active, method)(self, lambda: original(self, *args, **kwargs))

    return made


def _reducing(original: Any, position: int) -> Any:
    @functools.wraps(original)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        if recorder.active is None:
            return original(*args, **kwargs)
        thread = recorder.active.thread
        given = len(args) > position
        thread.reduce_op = args[position] if given else kwargs.get("op", dist.ReduceOp.SUM)
        try:
            return original(*args, **kwargs)
        finally:
            thread.reduce_op = ""

    return reduce


def _setting_up(original: Any, describe: Callable[..., Call | None]) -> Any:
    @functools.wraps(original)
    def set_up(*args: Any, **kwargs: Any) -> Any:
        active = recorder.active
        call = describe(*args, **kwargs) if active is not None else None
        if call is None:
            return original(*args, **kwargs)
        index = active.stand_still(call)
        out = original(*args, **kwargs)
        active.go_on(index)
        return out

    return set_up


def _new_group(
    ranks: Any = None, *_: Any, use_local_synchronization: bool = False, **__: Any
) -> Call | None:
    if not dist.is_initialized():
        return None
    everyone = tuple(range(dist.get_world_size()))
    members = tuple(sorted(ranks)) if ranks is not None else everyone
    callers, name = everyone, "new groups"
    if use_local_synchronization:  # the members alone call, and wait for each other
        callers, name = members, f"group {list(members)}"
    if dist.get_rank() not in callers:
        return None
    return Call(op="new_group", group=callers, group_name=name, detail=f"group {list(members)}")


def _init(backend: Any = None, *args: Any, world_size: int = -1, rank: int = -1, **_: Any) -> Call:
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", -1))
    launched = int(os.environ.get("BYHAND_WORLD_SIZE", size))
    return Call(
        op="init_process_group",
        group=tuple(range(launched)),
        group_name="set-up",
        detail=f"a world of {counted(size, 'rank')}" + (f" on {backend}" if backend else ""),
        declared=size,
    )
