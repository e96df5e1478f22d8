"""What runs inside a rank and writes its log: which communication calls, when, and who waited.

hooks.py tells it of every c10d operation, whoever makes it and in whatever thread (DDP's reducer,
FSDP, DTensor, batch_isend_irecv), and of what dispatch does not show. What a rank computes is not
watched; it has computed between two calls when its thread used COMPUTED_SECONDS of CPU time there.

With NCCL a wait ends when the work is queued, so times there are those of the queueing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from byhand.runtime.ledger import Call
from byhand.runtime.trace.calls import describe
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.trace.memory import HeldBytes
from byhand.runtime.trace.record import ASIDE, AWAKE, BEGIN, DONE, END, NOT_FOLLOWED, WAIT

COMPUTED_SECONDS = 100e-6
_BELOW = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
_RUNTIME = os.path.dirname(os.path.dirname(__file__))
_INTERNAL = (os.path.dirname(torch.__file__) + os.sep, _RUNTIME + os.sep, "<frozen")

active: Recorder | None = None


def caller() -> tuple[str, int]:
    """File and line of the innermost frame outside torch and this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_INTERNAL) and not name.endswith(("contextlib.py", "functools.py")):
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class _Thread(threading.local):
    """What the recorder keeps of each thread."""

    reduce_op = ""  # of the call that it is making
    functional = False  # whether that is a functional collective
    latest = (-1, 0)  # its last call, and the stretches of computing before it
    left_call = 0.0  # its CPU time when it last left a call or a wait


class Recorder:
    """While entered, writes this rank's calls to `log`, and its memory's peak, if followed."""

    def __init__(self, log: LogWriter, memory: HeldBytes | None = None):
        self.log = log
        self.memory = memory
        self.thread = _Thread()
        self._own_thread = threading.get_ident()
        self._stretches = 0  # of computing, in all threads
        self._works: dict[int, tuple[dist.Work, int, int]] = {}
        self._functional: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Recorder:
        global active
        active = self
        self.log.write(BEGIN, 0, time.monotonic())
        if self.memory is not None:
            self.memory.__enter__()
        self.thread.left_call = time.thread_time()
        return self

    def __exit__(self, *exception: Any) -> None:
        global active
        active = None
        peak = NOT_FOLLOWED
        if self.memory is not None:
            self.memory.__exit__(*exception)
            peak = self.memory.peak_bytes
        self.log.write(END, 0, time.monotonic(), peak)

    def call(self, call: Call) -> int:
        """Log a call with the line that makes it; its number."""
        self._note_computing()
        call.file, call.line = caller()
        index = self.log.call(call, time.monotonic())
        self.thread.latest = (index, self._stretches)
        return index

    def stand_still(self, index: int, computed: bool = False) -> None:
        """Log that this thread waits for call `index`; `computed`: it computed since."""
        own = threading.get_ident() == self._own_thread
        self.log.write(WAIT if own else ASIDE, index, time.monotonic(), computed)

    def go_on(self, index: int) -> None:
        """Log that it waits no longer."""
        self.log.write(AWAKE, index, time.monotonic())
        self.thread.left_call = time.thread_time()

    def communicate(self, op: Any, keyset: Any, args: tuple) -> Any:
        """Run a c10d operation, and log it."""
        index = self.call(describe(op._opname, args, self.thread.reduce_op))
        if op._opname == "monitored_barrier_":  # the rank stands still inside the call itself
            self.stand_still(index)
            out = op.redispatch(keyset & _BELOW, *args)
            self.go_on(index)
            return out
        out = op.redispatch(keyset & _BELOW, *args)
        work = dist.Work.unbox(out[-1] if isinstance(out, tuple) else out)
        if not self.thread.functional:
            self._forget_completed()
            self._works[id(work)] = (work, index, self._stretches)
        if op._opname not in ("send", "recv_", "recv_any_source_") and _is_asynchronous(op, args):
            self._note_completion(work, index)
        self.thread.left_call = time.thread_time()
        return out

    def functional(self, op: Any, keyset: Any, args: tuple) -> Any:
        """Run a functional collective, which calls c10d's; log the wait for one."""
        if op._opname == "wait_tensor":
            waited_for = self._functional.pop(args[0].untyped_storage()._cdata, None)
            return self._wait(waited_for, lambda: op.redispatch(keyset & _BELOW, *args))
        reduces = op._opname.startswith(("all_reduce", "reduce_scatter"))
        self.thread.reduce_op, self.thread.functional = args[1] if reduces else "", True
        try:
            out = op.redispatch(keyset & _BELOW, *args)
        finally:
            self.thread.reduce_op, self.thread.functional = "", False
        for tensor in [out] if isinstance(out, torch.Tensor) else out:
            self._functional[tensor.untyped_storage()._cdata] = self.thread.latest
        return out

    def wait(self, work: dist.Work, wait: Callable[[], Any]) -> Any:
        """Stand still for `work` by calling `wait`, and log it."""
        _, *waited_for = self._works.pop(id(work), (None,))
        return self._wait(waited_for, wait)

    def _wait(self, waited_for: Any, wait: Callable[[], Any]) -> Any:
        if not waited_for:
            return wait()
        self._note_computing()
        index, before = waited_for
        self.stand_still(index, self._stretches > before)
        out = wait()  # when it raises, the log goes on saying what this rank waited in
        self.go_on(index)
        return out

    def _note_computing(self) -> None:
        if time.thread_time() - self.thread.left_call > COMPUTED_SECONDS:
            self._stretches += 1

    def _note_completion(self, work: dist.Work, index: int) -> None:
        """Log when an asynchronous collective completes, where its backend tells (gloo does)."""
        if torch.cuda.is_initialized():
            return
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's reduce-scatter has none
            return
        future.add_done_callback(lambda _: self.log.write(DONE, index, time.monotonic()))

    def _forget_completed(self) -> None:
        """Drop the works that were waited for in C++ (by DDP's reducer) and are complete."""
        if len(self._works) > 64:
            for key, (work, *_) in list(self._works.items()):
                if work.is_completed():
                    del self._works[key]


def _is_asynchronous(op: Any, args: tuple) -> bool:
    names = [argument.name for argument in op._schema.arguments]
    at = names.index("async_op") if "async_op" in names else len(args)
    return at >= len(args) or args[at]
