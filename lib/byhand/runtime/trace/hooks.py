"""Functions of torch and Python, wrapped to tell the recorder what dispatch does not show.

The moment a rank stands still (Work.wait), the reduction (an opaque object in the dispatch), the
set-up calls init_process_group and new_group, and the threads that a rank starts.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from typing import Any

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from byhand.runtime.trace import recorder
from byhand.runtime.trace.calls import Described


def _wrap_wait() -> None:
    original = dist.Work.wait

    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder._active is None:
            return original(work, *args, **kwargs)
        return recorder._active.wait(work, lambda: original(work, *args, **kwargs))

    dist.Work.wait = functools.wraps(original)(wait)


def _wrap_reduction(name: str, position: int) -> None:
    original = getattr(c10d, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        if recorder._active is not None:
            op = args[position] if len(args) > position else kwargs.get("op", dist.ReduceOp.SUM)
            recorder._active.reduction.op = str(op).split(".")[-1].lower()
        try:
            return original(*args, **kwargs)
        finally:
            if recorder._active is not None:
                recorder._active.reduction.op = None

    for module in (c10d, dist):
        if hasattr(module, name):
            setattr(module, name, reduce)


def _wrap_setup(name: str, detail: Any) -> None:
    original = getattr(c10d, name)

    @functools.wraps(original)
    def set_up(*args: Any, **kwargs: Any) -> Any:
        if recorder._active is None:
            return original(*args, **kwargs)
        described = detail(*args, **kwargs)
        if described is None:
            return original(*args, **kwargs)
        index = recorder._active.call(described)
        recorder._active.stand_still(index)
        out = original(*args, **kwargs)
        recorder._active.write("awake", index, time.monotonic())
        return out

    for module in (c10d, dist):
        if hasattr(module, name):
            setattr(module, name, set_up)


def _wrap_threads() -> None:
    """Record what a rank's threads call, too, whatever kind of thread they are."""
    original = threading.Thread.start

    @functools.wraps(original)
    def start(thread: threading.Thread) -> None:
        active, run = recorder._active, thread.run
        if active is not None:
            thread.run = lambda: _recorded(active, run)
        original(thread)

    threading.Thread.start = start


def _recorded(active: recorder.Recorder, run: Any) -> None:
    with active.in_this_thread():
        run()


def _new_group(
    ranks: Any = None, *_: Any, use_local_synchronization: bool = False, **__: Any
) -> Described | None:
    if not dist.is_initialized():
        return None
    everyone = list(range(dist.get_world_size()))
    members = sorted(ranks) if ranks is not None else everyone
    callers, name = everyone, "new groups"
    if use_local_synchronization:  # the members alone call, and wait for each other
        callers, name = members, f"group {members}"
    if dist.get_rank() not in callers:
        return None
    fields = {"op": "new_group", "group_name": name, "group": callers, "detail": f"group {members}"}
    return Described(fields)


def _init(
    backend: Any = None, *args: Any, world_size: int = -1, rank: int = -1, **_: Any
) -> Described | None:
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", -1))
    launched = int(os.environ.get("BYHAND_WORLD_SIZE", size))
    detail = f"a world of {size} ranks" + (f" on {backend}" if backend else "")
    fields = {
        "op": "init_process_group",
        "group_name": "set-up",
        "group": list(range(launched)),
        "detail": detail,
        "declared": size,
    }
    return Described(fields)


def install() -> None:
    """Wrap torch.distributed once; the wrappers do nothing until a Recorder is entered."""
    _wrap_wait()
    _wrap_threads()
    for name, position in (
        ("all_reduce", 1),
        ("reduce", 2),
        ("reduce_scatter", 2),
        ("reduce_scatter_tensor", 2),
        ("reduce_scatter_single", 2),
        ("all_reduce_coalesced", 1),
    ):
        _wrap_reduction(name, position)
    _wrap_setup("_new_group_with_tag", _new_group)
    _wrap_setup("init_process_group", _init)
