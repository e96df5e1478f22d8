"""What a forked rank does: join the world, wait for its function, run it, wait for the end.

Descriptors it is given: control, a socket to the launching process, and four files. log: its calls
(see trace). output: what it prints. stack: its Python stacks, on demand or at a crash. result: what
the function returned or raised. By control it gets its call, a JSON header and a file in memory
with the pickled function and its arguments (and, at times, other descriptors for its output), and
with one byte it says that its result is written; a program's rank, with another, that its exit
functions have run.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import itertools
import json
import os
import pickle
import socket
import sys
import traceback
from traceback import TracebackException
from typing import Any

import torch
import torch.distributed as dist

from byhand.runtime import pickling
from byhand.runtime.messages import headed, receive_message
from byhand.runtime.process import world as process_group
from byhand.runtime.process.place import Place
from byhand.runtime.process.whereabouts import go_there
from byhand.runtime.program import COMPILER, run_exit_functions
from byhand.runtime.system import STACK_SIGNAL, new_file, rewrite
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.trace.memory import HeldBytes
from byhand.runtime.trace.recorder import Recorder

MAX_TEXT = 20_000
WAKE = b"."
_RUNTIME = os.path.dirname(os.path.dirname(__file__)) + os.sep
_HANDED_ON = "byhand.", "torch.distributed."


def rehearse() -> None:
    """Do once, before it counts, all that a launch does; it takes a third of the time afterwards.

    In the fork server this loads code; on a waiting rank it copies the memory pages that the run
    will write, and sends a first message on every connection. There it pickles no function: that
    looks at every module, which copies three quarters as many pages again as all the rest.
    """
    alone = not dist.is_initialized()
    with Recorder(LogWriter(-1), HeldBytes() if alone else None):
        x = torch.ones(4) + 1
        if not alone:
            dist.all_reduce(x)
    if alone:
        pickle.loads(pickling.dumps((rehearse, lambda: x)))
    with open(new_file("byhand rehearsal"), "rb") as file:
        pickling.write([x, {"a": 1.5}], file.fileno())
        pickling.read(file.fileno(), 0)


def main(fds: list[int], spec: dict[str, Any], place: Place) -> None:
    """Be rank `spec["rank"]`, from the fork to the kill."""
    control_fd, log_fd, output_fd, stack_fd, result_fd = fds
    rank, world_size = spec["rank"], spec["world_size"]
    here = spec.get("ranks", range(world_size))  # this machine's
    redirect(output_fd)
    _displace_nobody()
    faulthandler.enable(file=stack_fd, all_threads=False)
    faulthandler.register(STACK_SIGNAL, file=stack_fd, all_threads=False)
    place.close_in(rank, world_size)
    os.environ.update(
        dict(zip(("MASTER_ADDR", "MASTER_PORT"), map(str, spec["address"]), strict=True)),
        RANK=str(rank),
        WORLD_SIZE=str(world_size),
        LOCAL_RANK=str(here.index(rank)),
        LOCAL_WORLD_SIZE=str(len(here)),
        BYHAND_WORLD_SIZE=str(world_size),
        BYHAND_STORE=spec["store"],
    )
    os.environ.update(spec.get("environ", {}))  # where ranks live on several machines
    torch.set_num_threads(spec["threads"])
    if "numpy.random" in sys.modules:  # it came with the fork, the same on all ranks
        sys.modules["numpy.random"].seed()
    control = socket.socket(fileno=os.dup(control_fd))
    if spec["setup"]:
        process_group.setup(rank, world_size, spec["backend"])
        if dist.get_backend() == "gloo":  # then none begins before all are connected
            rehearse()
    header, call = receive(control)  # from here on what goes wrong is the function's own
    known, may_leave = len(sys.modules), header.get("may_leave")
    try:
        value = _run(rank, world_size, log_fd, header, call, place)
        backend = dist.get_backend() if dist.is_initialized() else None
        header = {"kind": "value", "backend": backend, "loaded": _loaded_since(known)}
        rewrite(result_fd, headed(header))
        place.dump(value, result_fd)
    except BaseException as error:
        rewrite(result_fd, headed(_error(error) | {"loaded": _loaded_since(known)}))
    with contextlib.suppress(ConnectionError):  # the team is ended already
        control.sendall(WAKE)
        if may_leave:  # after it was told what went wrong, for this may take long, or for ever
            run_exit_functions()
            control.sendall(WAKE)
        control.recv(1)  # stay until it is, so that no connection closes on the others


def _displace_nobody() -> None:
    """Have this rank's threads wake as a batch job's do: whoever runs may go on.

    gloo's thread polls without pause while another holds its connection's lock. Where ranks share
    cores, a waking thread that displaces the holder makes that last until the kernel's next tick:
    4 ms, in which some forty small messages pass.
    """
    with contextlib.suppress(OSError, AttributeError):  # forbidden, or not Linux: only slower
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def redirect(output_fd: int) -> None:
    """Let what this process prints go there; it has nothing to read."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    sys.stdout = sys.__stdout__ = _by_line(1)  # type: ignore[misc]  # a program may put it back
    sys.stderr = sys.__stderr__ = _by_line(2)  # type: ignore[misc]


def _by_line(fd: int) -> io.TextIOWrapper:
    return open(fd, "w", buffering=1, closefd=False, errors="backslashreplace")


def receive(control: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The next request's header and body; ends this process when none will come."""
    data, fds = receive_message(control, 4)
    if not data:
        os._exit(0)
    call = os.pread(fds[0], os.fstat(fds[0]).st_size, 0)
    for own, given in zip((1, 2, 0), fds[1:], strict=False):  # its output and input, if told
        os.dup2(given, own)
    for fd in fds:
        os.close(fd)
    return json.loads(data), call


def _run(
    rank: int, world_size: int, log_fd: int, header: dict[str, Any], call: bytes, place: Place
) -> Any:
    if header["there"] is not None:
        go_there(header["there"])
    fn, args = place.load(call)
    memory = HeldBytes() if header["memory"] else None
    if memory is not None:
        memory.track(list(args))
    try:
        with place.recorded(LogWriter(log_fd), memory):
            own = os.getpid()
            try:
                return fn(*args) if header["alone"] else fn(rank, world_size, *args)
            finally:
                _end_unless(own)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a notebook may have put anything in its place
                stream.flush()


def _end_unless(own: int) -> None:
    """End a process that the function forked and that came back from it: the rank tells, once.

    Its status is the one that Python would end with.
    """
    if os.getpid() == own:
        return
    error = sys.exc_info()[1]
    status = 0 if error is None else 1
    with contextlib.suppress(Exception):
        if not isinstance(error, SystemExit | None):
            traceback.print_exc()
        elif error is not None and isinstance(error.code, int | None):
            status = (error.code or 0) & 0xFF
        elif error is not None:
            print(error.code, file=sys.stderr)
        sys.stdout.flush()
    os._exit(status)


def _loaded_since(known: int) -> dict[str, str]:
    """The files of modules that came after the first `known` of all, by name: of this library's, of
    torch's compiler, and of what is below torch.distributed.

    Of the last cloudpickle sends more than a function uses: one with `dist` and `torch.tensor`
    brings torch.distributed.tensor to each rank, and sympy with it, if the notebook has loaded it.
    The others it does not touch: to look at a name is to copy the page of memory that it is on.
    """
    new = itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - known))
    some = [name for name in new if name.startswith(_HANDED_ON) or name == COMPILER]
    files = {name: getattr(sys.modules[name], "__file__", None) for name in some}
    return {name: file for name, file in files.items() if isinstance(file, str)}


def _error(error: BaseException) -> dict[str, Any]:
    """An exception as plain text: its type, its message, and the frames outside this package."""
    stack = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in stack if not f.filename.startswith(("<frozen", _RUNTIME))]
    frames = [[f.filename, f.lineno or 0, f.name] for f in theirs]
    return {
        "kind": "error",
        "exception": type(error).__name__,
        "message": _message(error)[:MAX_TEXT],
        "frames": frames[-50:],
    }


def _message(error: BaseException) -> str:
    """What an exception says, and below it, what those say that it came of."""
    try:
        told = TracebackException(type(error), error, None, limit=0, compact=True)
        text, behind = _said(told), _behind(told)
        if isinstance(error, SystemExit):  # a program's last words: Python shows nothing with them
            behind = []
        while behind and len(text) < MAX_TEXT:
            how, told = behind.pop()
            text += f"\n{how}: {_said(told)}"
            behind += _behind(told)
        return text
    except Exception:
        return f"{type(error).__name__} (its message could not be read)"


def _said(told: TracebackException) -> str:
    return "".join(told.format_exception_only()).strip()


def _behind(told: TracebackException) -> list[tuple[str, TracebackException]]:
    """What Python too would show an exception with, and how it came of that; the first is last."""
    members = [("because of", member) for member in told.exceptions or []]
    chained = [("because of", told.__cause__), ("while handling", told.__context__)]
    return [(how, one) for how, one in [*members, *chained] if one is not None][::-1]
