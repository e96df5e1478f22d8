"""What runs inside a rank and writes its log: which communication calls, when, and who waited.

hooks.py tells it of every c10d operation, whoever makes it and in whatever thread (DDP's reducer,
FSDP, DTensor, batch_isend_irecv), and of what dispatch does not show. What a rank computes is not
watched; it has computed between two calls when its thread used COMPUTED_SECONDS of CPU time there.

A call counts from when its backend has taken it. Gloo refuses a wrong one at once: nothing of it
was sent, and the rank may try another instead. So it is written only if the rank then fails,
perhaps by it, or is killed while it makes it: gloo's own thread ends a process that was sent more
than it expects. What gloo refuses under way (a dtype, say) has taken its place among the calls, and
counts; so does what others refuse (NCCL, torch's debug mode DETAIL): they may wait for other ranks
before.

With NCCL a wait ends when the work is queued, so times there are those of the queueing.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, thread_time
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from byhand.runtime.ledger import Call
from byhand.runtime.trace import sources
from byhand.runtime.trace.log import (
    ASIDE,
    AWAKE,
    BEGIN,
    DONE,
    END,
    NOT_FOLLOWED,
    WAIT,
    LogWriter,
    packed_call,
)
from byhand.runtime.trace.memory import HeldBytes

COMPUTED_SECONDS = 500e-6
_RUNTIME = os.path.dirname(os.path.dirname(__file__))
_CHECK = os.path.join(os.path.dirname(_RUNTIME), "check")
_INTERNAL = (
    os.path.dirname(torch.__file__) + os.sep,
    _RUNTIME + os.sep,
    _CHECK + os.sep,
    "<frozen",
)

_WRAPPERS = "contextlib.py", "functools.py", "typing_extensions.py"  # of what torch renamed
# torch's own: of what byhand.check puts in their place, only the program may ask
_future_of, _is_completed = dist.Work.get_future, dist.Work.is_completed
active: Recorder | None = None


@functools.cache
def _is_internal(filename: str) -> bool:
    return filename.startswith(_INTERNAL) or filename.endswith(_WRAPPERS)


@functools.cache
def _is_other(filename: str) -> bool:
    return _is_internal(filename) or sources.is_library(filename)


def calling_frame() -> FrameType:
    """The innermost frame outside torch and this package, and outside others if there is one."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    own: FrameType | None = frame
    while own is not None and _is_other(own.f_code.co_filename):
        own = own.f_back
    return own or frame


def caller() -> tuple[str, int]:
    """File and line of that frame."""
    frame = calling_frame()
    return frame.f_code.co_filename, frame.f_lineno


class _Thread(threading.local):
    """What the recorder keeps of each thread."""

    reduce_op: Any = ""  # of the call that it is making
    functional = False  # whether that is a functional collective
    latest = -1  # the number of its last call
    blocked: int | None = None  # the same, if it blocks and has not ended
    left_call = 0.0  # its CPU time when it last left a call or a wait
    left_at = 0.0  # and when it last left a call
    work: dist.Work | None = None  # of its last call, if that has sent one off


@dataclass(eq=False)
class _Sent:
    """A call under way."""

    index: int
    stretches: int  # of computing, before it
    waited: bool = False


class Recorder:
    """While entered, writes this rank's calls to `log`, and its memory's peak, if followed."""

    def __init__(self, log: LogWriter, memory: HeldBytes | None = None):
        self.log = log
        self.memory = memory
        self.thread = _Thread()
        self._own_thread = threading.get_ident()
        self._stretches = 0  # of computing, in all threads
        self._refused: tuple[bytes, float] | None = None  # form and moment, of the latest call
        # by work, and by future of one: no longer than somebody else keeps them and their tensors
        self._sent: WeakKeyDictionary[Any, _Sent] = WeakKeyDictionary()
        self._works: dict[int, dist.Work] = {}  # by call: until it is complete or waited for
        self._functional: dict[int, tuple[int, int]] = {}  # by storage: call, stretches before

    def __enter__(self) -> Recorder:
        global active
        active = self
        self.log.write(BEGIN, 0, monotonic())
        if self.memory is not None:
            self.memory.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        global active
        active = None
        peak = NOT_FOLLOWED
        if self.memory is not None:
            self.memory.__exit__(*exception)
            peak = self.memory.peak_bytes
        # sys.exit(0) is no failure
        failed = exception[1] is not None and getattr(exception[1], "code", True)
        if failed and self._refused is not None:
            self.log.call(*self._refused)
        self.log.write(END, 0, monotonic(), peak)

    def communicate(
        self,
        name: str,
        form: bytes,
        blocks: bool,
        make: Callable[..., Any],
        *args: Any,
        limited: bool = False,
        at_once: bool = False,
    ) -> Any:
        """Make the c10d operation of this name as make(*args), and log it as a call of this form.

        blocks: whether who makes it waits for it at once. limited: up to a time-out of its own.
        at_once: whether it is taken, or refused, before it waits for another rank.
        """
        self._note_computing()
        thread = self.thread
        thread.work = None
        self._forget_completed()
        call = form, monotonic(), self._waiting(limited) if blocks else 0
        if at_once:
            self.log.making(*call)
        else:
            self._log_call(*call)
        try:
            out = make(*args)
        except Exception:
            if at_once:
                self.log.not_making()
                self._refused = call[:2]
            # refused before it waited, or waited as long as it was to
            elif limited or name != "monitored_barrier_":
                self.go_on(thread.latest)
            raise
        if at_once:
            self._log_call(*call)
        if not blocks:
            self._send_off(out, name)
        elif out is None:  # a monitored barrier is over
            self.go_on(thread.latest)
        return out

    def _log_call(self, form: bytes, began: float, waits: int) -> None:
        """Write a call, which is this thread's latest from now on."""
        thread, self._refused = self.thread, None
        thread.latest = self.log.call(form, began, waits)
        thread.blocked = thread.latest if waits else None

    def _send_off(self, out: Any, name: str) -> None:
        """A call is under way: keep its work, to know it when it is waited for."""
        work = dist.Work.unbox(out[-1] if isinstance(out, tuple) else out)
        index = self.thread.latest
        if not self.thread.functional:
            self._sent[work] = _Sent(index, self._stretches)
            self._works[index] = self.thread.work = work
        if name not in ("send", "recv_", "recv_any_source_"):
            self._note_completion(work, index)
        self.thread.left_call, self.thread.left_at = thread_time(), monotonic()

    def functional(self, reduce_op: Any, make: Callable[[], Any]) -> Any:
        """Make a functional collective, which calls c10d's with this reduction."""
        before = self.thread.latest
        self.thread.reduce_op, self.thread.functional = reduce_op, True
        try:
            out = make()
        finally:
            self.thread.reduce_op, self.thread.functional = "", False
        if self.thread.latest == before:
            return out  # a compiler asks for its shape
        for tensor in [out] if isinstance(out, torch.Tensor) else out:
            key = tensor.untyped_storage()._cdata
            self._functional[key] = (self.thread.latest, self._stretches)
        return out

    def wait_for_tensor(self, tensor: torch.Tensor, wait: Callable[[], Any]) -> Any:
        """Stand still for a functional collective's tensor by calling `wait`, and log it."""
        self._note_computing()
        made = self._functional.pop(tensor.untyped_storage()._cdata, None)
        return wait() if made is None else self._wait(*made, wait)

    def wait(self, awaited: Any, wait: Callable[[], Any], limited: bool = False) -> Any:
        """Stand still for a work, or a future of one, by calling `wait`, and log it.

        limited: only up to a time-out of its own.
        """
        index = self.thread.blocked
        if index is not None:
            out = wait()
            self.go_on(index)
            return out
        self._note_computing()
        sent = self._sent.get(awaited)
        if sent is None or sent.waited:
            return wait()
        sent.waited = True
        try:
            out = self._wait(sent.index, sent.stretches, wait, limited)
        except Exception:
            sent.waited = False  # it may be waited for again
            work = self._works.get(sent.index)
            # a time-out: it may be still under way
            if limited or (work is not None and not _is_completed(work)):
                self.go_on(sent.index)
            raise
        self._works.pop(sent.index, None)
        if sent.index == self.thread.latest:
            self.thread.work = None
        return out

    def follow(self, source: Any, make: Callable[[], Any]) -> Any:
        """Make a future of a work, or of another future, and know it when it is waited for."""
        future = make()
        if (sent := self._sent.get(source)) is not None:
            self._sent[future] = sent
        return future

    def wait_for_future(self, future: Any, wait: Callable[[], Any]) -> Any:
        """Stand still for the work of `future`, if it is of one, by calling `wait`."""
        return self.wait(future, wait) if future in self._sent else wait()

    def _wait(
        self, index: int, stretches_before: int, wait: Callable[[], Any], limited: bool = False
    ) -> Any:
        computed = self._stretches > stretches_before
        self.log.write(self._waiting(limited), index, monotonic(), computed)
        out = wait()  # when it raises, the log goes on saying what this rank waited in
        self.go_on(index)
        return out

    def run_backward(self, run: Callable[[], Any]) -> Any:
        """Make a backward pass, and log that it waited at its end, if it did.

        DDP's does in C++, for all of its calls at once: since the last of them, this thread has
        stood still but for what it computed (or other programs had its processor).
        """
        thread, before = self.thread, self.thread.latest
        out = run()
        now, work = monotonic(), thread.work
        if thread.latest == before or work is None or not _is_completed(work):
            return out
        sent, thread.work = self._sent[work], None
        if not sent.waited:
            sent.waited = True
            computed = thread_time() - thread.left_call
            self.log.write(self._waiting(), sent.index, min(now, thread.left_at + computed), 1)
            self.log.write(AWAKE, sent.index, now)
        return out

    def stand_still(self, call: Call) -> int:
        """Log a call that no dispatch shows, for which this thread waits; its number."""
        call.file, call.line = caller()
        self._refused = None
        return self.log.call(packed_call(call), monotonic(), self._waiting())

    def go_on(self, index: int) -> None:
        """Log that it waits no longer."""
        self.thread.blocked = None
        self.log.write(AWAKE, index, monotonic())
        if self._sent:
            self.thread.left_call = thread_time()

    def _waiting(self, limited: bool = False) -> int:
        """How this thread stands still: up to a time-out of its own, or beside another thread that
        the rank would wait for, aside.
        """
        if limited or threading.get_ident() != self._own_thread:
            return ASIDE
        if threading.active_count() == 1:
            return WAIT
        others = (t for t in threading.enumerate() if t.ident != self._own_thread)
        return WAIT if all(t.daemon for t in others) else ASIDE

    def _note_computing(self) -> None:
        """Count a stretch of computing since this thread's last call, while others travel."""
        if self._sent or self._functional:
            self._stretches += thread_time() - self.thread.left_call > COMPUTED_SECONDS

    def _note_completion(self, work: dist.Work, index: int) -> None:
        """Log when an asynchronous collective completes, where its backend tells (gloo does)."""
        if torch.cuda.is_initialized():
            return
        try:
            future = _future_of(work)
        except RuntimeError:  # gloo's reduce-scatter has none
            return
        future.add_done_callback(lambda _: self.log.write(DONE, index, monotonic()))

    def _forget_completed(self) -> None:
        """Let go of the works that are complete: for one that nobody else has, nobody can wait."""
        if not self._works:
            return
        if len(self._works) > 64 or not torch.cuda.is_initialized():  # there, to ask costs more
            for index, work in list(self._works.items()):
                if _is_completed(work):
                    self._works.pop(index, None)
