"""What a launch asks of the operating system: in Linux's way, or in one that every Unix has.

                            Linux                             portable
a file in memory            memfd_create                      a temporary file without a name
the ranks' meeting place    that file, by /proc/self/fd       a temporary file with a name
a rank ends with its server the kernel kills it               a thread of its own sees a pipe end
what a rank leaves behind   becomes the server's child        is found by its environment
seconds a rank computed     its clock                         as psutil tells

PORTABLE says which: the second where a call of the first is missing, as on macOS, or where
BYHAND_PORTABLE=1 asks for it. There a launch takes some milliseconds more, a program that clears
its environment and leaves its parent stays behind, and nobody knows how long a rank waited for a
processor. Walls and virtual networks are Linux's alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import numbers
import operator
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

import psutil

from byhand.words import counted

PORTABLE = (
    bool(os.environ.get("BYHAND_PORTABLE"))
    or sys.platform != "linux"
    or not hasattr(os, "memfd_create")
)
MARK = "BYHAND_SERVER"  # in the environment of a fork server, and so of all that it forks
MIXED = "cpu:gloo,cuda:nccl"  # a backend for each kind of tensors
MAX_RANKS = "BYHAND_MAX_RANKS"  # in the environment: so many may be asked for, room or not
FEW_RANKS, RANKS_A_CORE = 16, 128  # there is always room for a few
RANK_BYTES, RANK_FILES = 24 << 20, 8  # about what a fresh one writes to, and what is open for it
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIGKILL = 9
# Asks a rank where it stands: not SIGUSR1, by which clusters tell a program that its time is over.
STACK_SIGNAL = int(signal.SIGRTMAX) - 1 if hasattr(signal, "SIGRTMAX") else int(signal.SIGUSR1)
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_LARGE_PAGE, _MADV_COLLAPSE = 2 << 20, 25


def new_mark() -> dict[str, str]:
    """The environment that tells a fork server's processes from all others."""
    return {MARK: uuid.uuid4().hex}


def new_file(name: str) -> int:
    """The descriptor of a new file in memory; of one without a name where none can be had."""
    if not PORTABLE:
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def rewrite(fd: int, data: bytes) -> None:
    """Have a file hold just these bytes; what is written next goes after them."""
    os.ftruncate(fd, 0)
    with open(fd, "wb", closefd=False) as file:
        file.seek(0)
        file.write(data)


def give_back(fd: int, start: int, end: int) -> None:
    """Have the file hold nothing between these bytes, whole pages, and take no memory there."""
    if not PORTABLE and end > start:
        span = ctypes.c_longlong(start), ctypes.c_longlong(end - start)
        ctypes.CDLL(None).fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, *span)


def use_large_pages() -> None:
    """Have what this process holds lie in large pages of memory; only slower where that is refused.

    A fork copies the list of its parent's pages, and the child's end reads it through. For the
    220 MB of torch and what it loads that is most of both: 14 ms, and with large pages 4.4 (for
    which they are copied once: half a second where a machine is slow to hand out memory).
    """
    if PORTABLE:
        return
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, inode, *_ = line.split()
        start, end = (int(edge, 16) for edge in span.split("-"))
        start, end = -(-start // _LARGE_PAGE) * _LARGE_PAGE, end // _LARGE_PAGE * _LARGE_PAGE
        if rights.startswith("rw") and inode == "0" and start < end:
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_COLLAPSE)


def check_room(world_size: int) -> None:
    """Refuse more ranks than this machine holds, unless MAX_RANKS in the environment allows them.

    An estimate: every rank connects to every other, so their start takes a core longer than in
    proportion; each writes to some memory of its own, and its launcher holds files for it.

    Raises:
        ValueError: there is no room; the sentence says for how many there is, and why.
    """
    allowed = os.environ.get(MAX_RANKS, "")
    if allowed and not allowed.isdecimal():
        raise ValueError(f"{MAX_RANKS} is a number of ranks, not {allowed!r}")
    if world_size <= (int(allowed) if allowed else FEW_RANKS):
        return
    cores, free = len(_cores()), psutil.virtual_memory().available
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most, why = min(
        (cores * RANKS_A_CORE, f"{counted(cores, 'core')}, {RANKS_A_CORE} ranks each"),
        (free // RANK_BYTES, f"{free / 1e9:.1f} GB of free memory, {RANK_BYTES >> 20} MB a rank"),
        (files // RANK_FILES, f"{files} open files a process (ulimit -n), {RANK_FILES} a rank"),
    )
    if not allowed and world_size <= most:
        return
    room = f"{MAX_RANKS} in the environment allows {allowed}" if allowed else f"{most}: {why}"
    raise ValueError(
        f"{world_size} ranks are more than there is room for on this machine ({room}). Ask for"
        f" fewer, or set {MAX_RANKS}={world_size} in the environment to start them all the same"
    )


def no_files_left(world_size: int) -> str:
    """Why so many ranks could not be started: a sentence for where files cannot be opened."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        f"{counted(world_size, 'rank')} need more open files than this process has left of its"
        f" {most} (ulimit -n), {RANK_FILES} a rank. Ask for fewer ranks, close files, or raise it"
    )


def check_backend(backend: str) -> None:
    """Refuse a word that names no backend; whether one can run here, torch knows.

    Raises:
        ValueError: it names none.
    """
    if backend not in ("auto", "gloo", "nccl", MIXED):
        raise ValueError(f'backend {backend!r} is unknown; choose "auto", "gloo" or "nccl"')


def whole_number(name: str, value: Any) -> int:
    """A count as an int, whatever library's number it is.

    Raises:
        ValueError: it is none, or less than 1.
    """
    with contextlib.suppress(TypeError):
        if not isinstance(value, bool) and (number := operator.index(value)) >= 1:
            return number
    raise ValueError(f"{name} is a whole number of at least 1, not {value!r}")


def is_number(value: Any) -> bool:
    """Whether it is a real number, whatever library's."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _cores() -> Collection[int]:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return range(os.cpu_count() or 1)


def meeting_place() -> tuple[int, str]:
    """A new file in which ranks find each other: its descriptor, and its name on a rank."""
    if PORTABLE:
        return tempfile.mkstemp(prefix="byhand-store-")
    store = new_file("byhand store")
    return store, f"/proc/self/fd/{store}"


def leave_meeting_place(store: int, name: str) -> None:
    """Give it back."""
    os.close(store)
    if PORTABLE:
        with contextlib.suppress(FileNotFoundError):  # torch's store removes its file
            os.unlink(name)


def free_port() -> socket.socket:
    """A free TCP port, kept from others but open to a rank's store, which listens on it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def loopback() -> str:
    """The name of the network device that this machine talks to itself through."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def signal_main_thread(pid: int, number: int) -> None:
    """Send process `pid` a signal that its main thread is to take, where a thread can be named.

    The kernel gives a busy process's signal to whichever of its threads is at hand. One of torch's
    own takes it in vain: it has no Python stack to tell.
    """
    if not PORTABLE and hasattr(libc := ctypes.CDLL(None), "tgkill"):  # glibc has since 2.30
        libc.tgkill(pid, pid, number)
    else:
        os.kill(pid, number)


def adopt_orphans() -> None:
    """Have what this process's descendants leave behind become its children."""
    if not PORTABLE:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with(life: int, parent: int | None) -> None:
    """In a forked process: end when `parent` does. `life`: a pipe that only it can write to.

    parent: its process id; None where this process cannot see it any more.
    """
    if not PORTABLE:
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if parent not in (None, os.getppid()):
            os._exit(1)
        return

    def wait() -> None:
        os.read(life, 1)
        os.kill(os.getpid(), _SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def children() -> dict[int, int]:
    """Process ids of all that this process or its descendants forked, and what /proc calls them.

    In a process namespace below the one that /proc was mounted for, it has other numbers.
    """
    if PORTABLE:
        return {pid: pid for pid in _marked()}
    me = int(os.readlink("/proc/self"))
    listed = Path(f"/proc/self/task/{me}/children")  # a hundred times faster
    if listed.exists():
        names = list(map(int, listed.read_text().split()))
    else:
        names = [child.pid for child in psutil.Process(me).children()]
    if me == os.getpid():
        return dict(zip(names, names, strict=True))
    found = {}
    for name in names:
        with contextlib.suppress(OSError):  # it has ended
            status = Path(f"/proc/{name}/status").read_text()
            found[int(status.partition("\nNSpid:")[2].split("\n")[0].split()[-1])] = name
    return found


def _marked() -> set[int]:
    """Those that live, and are descendants of this process or have its mark."""
    own = psutil.Process()
    found = {child.pid for child in own.children(recursive=True)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # another user's, or it has ended
            if process.environ().get(MARK) == os.environ.get(MARK, ""):
                found.add(process.pid)
    living = found - {own.pid}
    return {pid for pid in living if _status(pid) not in (None, psutil.STATUS_ZOMBIE)}


def _status(pid: int) -> str | None:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status()
    return None


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    if not PORTABLE:  # the kernel's clock number for a process is made from its id
        return time.clock_gettime((~pid << 3) | 2)
    with contextlib.suppress(psutil.Error):
        return sum(psutil.Process(pid).cpu_times()[:2])
    return 0.0


def waited_seconds(name: int) -> float:
    """How long the first thread of process `name` (in /proc) could run and was not let to."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{name}/schedstat").read_text().split()[1]) / 1e9
    return 0.0
