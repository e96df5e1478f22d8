"""What a forked rank does: join the world, wait for its function, run it, reply, wait for the end.

Descriptors it is given: control (a socket to the launching process), log (see trace.py), output
(what it prints) and stack (Python stacks on demand, or at a crash).

The request is a JSON header and a memory file with three sections: the student's cells, which
are run first, the pickled function with its arguments, and nothing else. The reply is a JSON
header and a body.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist

from byhand.runtime.process import codec
from byhand.runtime.process import world as process_group
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.trace.memory import HeldBytes
from byhand.runtime.trace.recorder import Recorder
from byhand.runtime.walls import event_loop, landlock, namespaces, on_gpu, prelude, seccomp

MAX_TEXT = 20_000
SCRATCH_BYTES = 64 << 20
_LIMITS = {
    "memory_bytes": resource.RLIMIT_DATA,
    "address_bytes": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
}


def rehearse() -> None:
    """Do once, before it counts, all that a launch does; it takes a third of the time afterwards.

    In the fork server this loads code; on a waiting rank it also copies the memory pages that the
    run will write, and sends a first message on every connection.
    """
    alone = not dist.is_initialized()
    with Recorder(LogWriter(-1), HeldBytes() if alone else None):
        x = torch.ones(4) + 1
        if not alone:
            dist.all_reduce(x)
    pickle.loads(cloudpickle.dumps((rehearse, lambda: x)))
    codec.decode(codec.encode([x, {"a": 1.5}]))


def main(fds: list[int], spec: dict[str, Any], address: tuple[str, int], store_fd: int) -> None:
    """Be rank `spec["rank"]`, from the fork to the kill. `address`: rank 0's, for a TCP store."""
    control_fd, log_fd, output_fd, stack_fd = fds
    _redirect(output_fd)
    _displace_nobody()
    faulthandler.enable(file=stack_fd, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=stack_fd, all_threads=False)
    _bind(spec["limits"], spec["world_size"])
    if spec.get("private"):
        _close_all_but(0, 1, 2, *fds, store_fd)
        os.setsid()  # the kernel shares time out by session: a flood of processes gets one share
        namespaces.enter_alone(spec["limits"].get("scratch_bytes", SCRATCH_BYTES))
        landlock.separate()
        _bind_alone(spec["limits"])
    rank, world_size = spec["rank"], spec["world_size"]
    os.environ.update(
        MASTER_ADDR=address[0],
        MASTER_PORT=str(address[1]),
        RANK=str(rank),
        WORLD_SIZE=str(world_size),
        LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=str(world_size),
        BYHAND_WORLD_SIZE=str(world_size),
        BYHAND_STORE=f"/proc/self/fd/{store_fd}",
    )
    os.environ.update(spec.get("environ", {}))  # where ranks live on several machines
    torch.set_num_threads(spec["threads"])
    control = socket.socket(fileno=os.dup(control_fd))
    try:
        device = on_gpu.taken(rank, spec["limits"])
        if spec["setup"]:
            process_group.setup(rank, world_size, spec["backend"])
            if spec["backend"] == "gloo":
                rehearse()
        header, sections = _receive(control)
        with on_gpu.placed(device):
            reply, body = _run(rank, world_size, log_fd, header, sections, device)
    except BaseException as error:
        reply, body = _error(error), b""
    _reply(control, reply, body)
    control.recv(1)  # stay until the team is ended, so that no connection closes on the others


def _displace_nobody() -> None:
    """Have this rank's threads wake as a batch job's do: whoever runs may go on.

    gloo's thread polls without pause while another holds its connection's lock. Where ranks share
    cores, a waking thread that displaces the holder makes that last until the kernel's next tick:
    4 ms, in which some forty small messages pass.
    """
    with contextlib.suppress(OSError):  # a container may forbid it: then it is only slower
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _bind(limits: dict[str, int], world_size: int) -> None:
    """Set this process's limits. One user's processes count together: all ranks', at first."""
    for name, value in limits.items():
        if name in _LIMITS:
            value *= world_size if name == "processes" else 1
            resource.setrlimit(_LIMITS[name], (value, value))
    if "memory_bytes" in limits:
        seccomp.forbid(gpu="device_bytes" in limits)
        event_loop.without_sockets()


def _bind_alone(limits: dict[str, int]) -> None:
    """Limit this rank's processes by themselves: so far the limit was that of all ranks."""
    if "processes" in limits:
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"], limits["processes"]))


def _close_all_but(*kept: int) -> None:
    """Close what the fork server had open: its ranks would share it."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _redirect(output_fd: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="backslashreplace")
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[bytes]]:
    data, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
    if not data:
        os._exit(0)
    header = json.loads(data)
    sections, at = [], 0
    for length in header["sections"]:
        sections.append(os.pread(fds[0], length, at))
        at += length
    os.close(fds[0])
    return header, sections


def _run(
    rank: int,
    world_size: int,
    log_fd: int,
    header: dict[str, Any],
    sections: list[bytes],
    device: torch.device | None,
) -> tuple[dict[str, Any], bytes]:
    if header["path"] is not None:
        sys.path[:] = header["path"]
    with contextlib.suppress(OSError):
        os.chdir(header["directory"])
    notes = prelude.run(json.loads(sections[0]))
    fn, args = on_gpu.loads(sections[1], device)
    memory = HeldBytes() if header["memory"] else None
    if memory is not None:
        memory.track(list(args))
    record = Recorder if device is None else on_gpu.Staging
    try:
        with record(LogWriter(log_fd), memory):
            value = fn(*args) if header["alone"] else fn(rank, world_size, *args)
    except BaseException as error:
        return _error(error) | {"notes": notes}, b""
    finally:
        with contextlib.suppress(Exception):  # a notebook may have put anything in its place
            sys.stdout.flush()
    backend = dist.get_backend() if dist.is_initialized() else None
    kind, body = _encode(value, header["trusted"])
    return {"kind": kind, "notes": notes, "backend": backend}, body


def _encode(value: Any, trusted: bool) -> tuple[str, bytes]:
    try:
        return "plain", codec.encode(value)
    except codec.CodecError as error:
        if not trusted:
            raise TypeError(f"what the function returned cannot be graded: {error}") from None
    try:
        return "pickle", cloudpickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"the result, a {type(value).__name__}, cannot travel back to the notebook: {error}"
        ) from None


def _error(error: BaseException) -> dict[str, Any]:
    """An exception as plain text: its type, its message, and the frames outside this module."""
    stack = traceback.extract_tb(error.__traceback__)
    frames = [[f.filename, f.lineno or 0, f.name] for f in stack if f.filename != __file__]
    frames = [frame for frame in frames if not frame[0].startswith("<frozen")]
    try:
        message = "".join(traceback.format_exception_only(error)).strip()
    except Exception:
        message = f"{type(error).__name__} (its message could not be read)"
    return {
        "kind": "error",
        "exception": type(error).__name__,
        "message": message[:MAX_TEXT],
        "frames": frames[-50:],
    }


def _reply(control: socket.socket, reply: dict[str, Any], body: bytes) -> None:
    header = json.dumps({**reply, "body": len(body)}).encode()
    control.sendall(len(header).to_bytes(8, "big") + header)
    control.sendall(body)
