"""What runs inside a rank and writes its log: which calls, when, and how much memory.

A TorchDispatchMode sees every c10d operation, also those that DDP's reducer, FSDP and
batch_isend_irecv make, and every tensor operation in between (so it can count the bytes of
storage that live tensors hold). Three things dispatch does not show are wrapped in Python: the
moment a rank stands still (Work.wait), the reduction (an opaque object in the dispatch), and the
set-up calls init_process_group and new_group.

With NCCL a wait ends when the work is queued, so times there are those of the queueing.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import weakref
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.utils._python_dispatch import TorchDispatchMode

from byhand.runtime.calls import Described, describe

_active: Recorder | None = None
_INTERNAL = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)


def caller() -> list[str | int]:
    """File and line of the innermost frame outside torch and this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_INTERNAL) and not name.startswith("<frozen"):
            if "contextlib.py" not in name and "functools.py" not in name:
                break
        frame = frame.f_back
    return [frame.f_code.co_filename, frame.f_lineno]


class _Held(weakref.ref):
    """A weak reference to a storage that knows which storage, and how many bytes, it was."""

    __slots__ = ("key", "num_bytes")


class Recorder(TorchDispatchMode):
    """While entered, writes this rank's communication calls to `log_fd` and counts its memory."""

    def __init__(self, log_fd: int):
        super().__init__()
        self.log_fd = log_fd
        self.reduce_op: Any = None
        self.peak_bytes = 0
        self._calls = 0
        self._computed = 0
        self._held_bytes = 0
        self._held: dict[int, _Held] = {}
        self._works: dict[int, tuple[Any, int, int]] = {}
        self._functional: dict[int, tuple[int, int]] = {}

    def write(self, *record: Any) -> None:
        """Append one record to the log."""
        os.write(self.log_fd, json.dumps(record).encode() + b"\n")

    def __enter__(self) -> Recorder:
        global _active
        _active = self
        self.write("begin", time.monotonic())
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        global _active
        _active = None
        super().__exit__(*exception)
        self.write("end", time.monotonic(), self.peak_bytes)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        namespace = func.namespace
        if namespace == "c10d" or namespace == "_c10d_functional":
            return self._communicate(func, args, kwargs or {})
        out = func(*args, **kwargs) if kwargs else func(*args)
        self.track(out)
        return out

    def track(self, value: Any) -> None:
        """Count the storages of the tensors in `value` until they are freed."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.track(item)
        elif isinstance(value, dict):
            self.track(list(value.values()))
        elif isinstance(value, torch.Tensor) and type(value) in (torch.Tensor, torch.nn.Parameter):
            if value.layout is torch.strided:
                self._hold(value.untyped_storage())
            elif value.layout is torch.sparse_coo:
                self.track([value._indices(), value._values()])

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._held:
            return
        self._computed += 1
        held = self._held[key] = _Held(storage, self._free)
        held.key, held.num_bytes = key, storage.nbytes()
        self._held_bytes += held.num_bytes
        self.peak_bytes = max(self.peak_bytes, self._held_bytes)

    def _free(self, held: _Held) -> None:
        if self._held.get(held.key) is held:
            del self._held[held.key]
            self._held_bytes -= held.num_bytes

    def _communicate(self, func: Any, args: tuple, kwargs: dict) -> Any:
        described = describe(func._opname, args, kwargs, self.reduce_op)
        if described is None:
            return self._functional_wait(func, args, kwargs)
        index = self.call(described)
        if described.blocks:
            self.write("wait", index, time.monotonic(), False)
        out = func(*args, **kwargs)
        if described.functional:
            self.track(out)
            for tensor in [out] if isinstance(out, torch.Tensor) else out:
                self._functional[tensor.untyped_storage()._cdata] = (index, self._computed)
            return out
        try:
            work = dist.Work.unbox(out[-1] if isinstance(out, tuple) else out)
        except (RuntimeError, TypeError):
            self.write("awake", index, time.monotonic())
            return out
        self._forget_completed()
        self._works[id(work)] = (work, index, self._computed)
        if not described.blocks and described.fields["op"] not in ("send", "recv"):
            self._note_completion(work, index)
        return out

    def call(self, described: Described) -> int:
        """Log a call; return its number."""
        index = self._calls
        self._calls += 1
        fields = {**described.fields, "source": caller()}
        self.write("call", index, fields, time.monotonic())
        return index

    def _note_completion(self, work: Any, index: int) -> None:
        """Log when an asynchronous collective completes, where its backend tells (gloo does)."""
        if torch.cuda.is_initialized():
            return
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's reduce-scatter has none
            return
        future.add_done_callback(lambda _: self.write("done", index, time.monotonic()))

    def _forget_completed(self) -> None:
        """Drop the works that were waited for in C++ (by DDP's reducer) and are complete."""
        if len(self._works) > 64:
            for key, (work, _, _) in list(self._works.items()):
                if work.is_completed():
                    del self._works[key]

    def _functional_wait(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """`wait_tensor`: the wait of a functional collective."""
        index = None
        if func._opname == "wait_tensor":
            key = args[0].untyped_storage()._cdata
            index, before = self._functional.pop(key, (None, 0))
        if index is None:
            return func(*args, **kwargs)
        self.write("wait", index, time.monotonic(), self._computed > before)
        out = func(*args, **kwargs)
        self.write("awake", index, time.monotonic())
        return out

    def wait(self, work: Any, wait: Any) -> Any:
        """Stand still for `work` by calling `wait`, and log it."""
        _, index, before = self._works.pop(id(work), (None, None, 0))
        if index is None:
            return wait()
        self.write("wait", index, time.monotonic(), self._computed > before)
        out = wait()  # when it raises, the log goes on saying what this rank waited in
        self.write("awake", index, time.monotonic())
        return out


def _wrap_wait() -> None:
    original = dist.Work.wait

    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        if _active is None:
            return original(work, *args, **kwargs)
        return _active.wait(work, lambda: original(work, *args, **kwargs))

    dist.Work.wait = functools.wraps(original)(wait)


def _wrap_reduction(name: str, position: int) -> None:
    original = getattr(c10d, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        if _active is not None:
            op = args[position] if len(args) > position else kwargs.get("op", dist.ReduceOp.SUM)
            _active.reduce_op = str(op).split(".")[-1].lower()
        try:
            return original(*args, **kwargs)
        finally:
            if _active is not None:
                _active.reduce_op = None

    for module in (c10d, dist):
        if hasattr(module, name):
            setattr(module, name, reduce)


def _wrap_setup(name: str, detail: Any) -> None:
    original = getattr(c10d, name)

    @functools.wraps(original)
    def set_up(*args: Any, **kwargs: Any) -> Any:
        if _active is None:
            return original(*args, **kwargs)
        described = detail(*args, **kwargs)
        if described is None:
            return original(*args, **kwargs)
        index = _active.call(described)
        _active.write("wait", index, time.monotonic(), False)
        out = original(*args, **kwargs)
        _active.write("awake", index, time.monotonic())
        return out

    for module in (c10d, dist):
        if hasattr(module, name):
            setattr(module, name, set_up)


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
