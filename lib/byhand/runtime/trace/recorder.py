"""What runs inside a rank and writes its log: which calls, when, and how much memory.

A TorchDispatchMode sees every c10d operation, also those that DDP's reducer, FSDP and
batch_isend_irecv make, and every tensor operation in between (so it can count the bytes of
storage that live tensors hold). What dispatch does not show, hooks.py tells. A mode is a thread's
own; threads that the rank starts enter it too, and what they wait for is not what the rank does.

With NCCL a wait ends when the work is queued, so times there are those of the queueing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from byhand.runtime.trace.calls import Described, describe

_active: Recorder | None = None
_RUNTIME = os.path.dirname(os.path.dirname(__file__))
_INTERNAL = (os.path.dirname(torch.__file__) + os.sep, _RUNTIME + os.sep)


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
        self.reduction = threading.local()  # `op`: of the call that this thread is making
        self.peak_bytes = 0
        self._calls = 0
        self._computed = 0
        self._held_bytes = 0
        self._held: dict[int, _Held] = {}
        self._works: dict[int, tuple[Any, int, int]] = {}
        self._functional: dict[int, tuple[int, int]] = {}
        self._thread = 0
        self._lock = threading.RLock()  # a tensor may be freed while another is counted

    def write(self, *record: Any) -> None:
        """Append one record to the log."""
        os.write(self.log_fd, json.dumps(record).encode() + b"\n")

    def __enter__(self) -> Recorder:
        global _active
        _active = self
        self._thread = threading.get_ident()
        self.write("begin", time.monotonic())
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        global _active
        _active = None
        super().__exit__(*exception)
        self.write("end", time.monotonic(), self.peak_bytes)

    @contextlib.contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Record what the calling thread does meanwhile, beside the rank's own thread."""
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)

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
        with self._lock:
            if key in self._held:
                return
            self._computed += 1
            held = self._held[key] = _Held(storage, self._free)
            held.key, held.num_bytes = key, storage.nbytes()
            self._held_bytes += held.num_bytes
            self.peak_bytes = max(self.peak_bytes, self._held_bytes)

    def _free(self, held: _Held) -> None:
        with self._lock:
            if self._held.get(held.key) is held:
                del self._held[held.key]
                self._held_bytes -= held.num_bytes

    def _communicate(self, func: Any, args: tuple, kwargs: dict) -> Any:
        described = describe(func._opname, args, kwargs, getattr(self.reduction, "op", None))
        if described is None:
            return self._functional_wait(func, args, kwargs)
        index = self.call(described)
        if described.blocks:
            self.stand_still(index)
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
        fields = {**described.fields, "source": caller()}
        with self._lock:
            index = self._calls
            self._calls += 1
            self.write("call", index, fields, time.monotonic())
        return index

    def stand_still(self, index: int, computed: bool = False) -> None:
        """Log that this thread waits for call `index`; `computed`: tensor operations ran since."""
        own = threading.get_ident() == self._thread
        self.write("wait" if own else "aside", index, time.monotonic(), computed)

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
        self.stand_still(index, self._computed > before)
        out = func(*args, **kwargs)
        self.write("awake", index, time.monotonic())
        return out

    def wait(self, work: Any, wait: Any) -> Any:
        """Stand still for `work` by calling `wait`, and log it."""
        _, index, before = self._works.pop(id(work), (None, None, 0))
        if index is None:
            return wait()
        self.stand_still(index, self._computed > before)
        out = wait()  # when it raises, the log goes on saying what this rank waited in
        self.write("awake", index, time.monotonic())
        return out
