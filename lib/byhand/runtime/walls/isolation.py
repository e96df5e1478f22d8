"""The walls around code that nobody has read: what can be had here, best first.

bubblewrap: own user, process, network, IPC, host-name and mount namespaces; the system, this Python
and this library read-only; an empty /tmp and an empty home; a cleared environment. Outside, and
out of sight: the checkout (solutions, tests), the gradebook, the journal, other submissions, every
home. Each question gets a second wall inside this one, and each rank a third.

Landlock: the same files within reach and no others, a cleared environment, an empty directory for
each question; but one process table, names of other files, and the shared places of a machine's
ranks stay in sight, and how many files it fills is not limited, only how large each is. What it
starts is killed, not walled off.

Both work for root and for ordinary users. Root's submissions run as a user of their own, whom
limits on processes bind.

Not promised. Ranks of one question that mean to can still pass values by what they write in the
file they meet in, by file locks, by how long they compute, and by what the kernel tells each of the
others: names of threads and children in /proc, limits and priorities, ports and addresses at which
they listen. They then send zeros for the ledger. What TCP repeats counts as the largest message
each time, so who provokes repeats has as many bytes to spare. The kernel counts what all ranks
sent, and not by which call: a log may name one call where others carried as many bytes, padded if
need be (a gather and a broadcast for an all-reduce). Packets would not tell these apart, since TCP
splits, joins and acknowledges as time allows. A rank tells its own peak of memory. Whoever breaks
the kernel breaks out.

Not allowed: a rank without a GPU has TCP sockets and no others (see seccomp.py), so that the
workers of a DataLoader do not start in it.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from byhand.runtime.process.client import ENVIRON
from byhand.runtime.walls import gpus, landlock

LIBRARY = Path(__file__).resolve().parents[2]  # lib/byhand, and not the checkout around it
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/ssl/openssl.cnf")
ENVIRONMENT = {
    **ENVIRON,
    "HOME": "/tmp",
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "TORCHINDUCTOR_CACHE_DIR": "/tmp",
}
INSTALL = "apt-get install bubblewrap (as root), or your system's equivalent"
STRANGER = 61_183  # the user that root's submissions run as: no account, and no files
BUBBLEWRAP, LANDLOCK, NONE = "bubblewrap", "landlock", "none"


@dataclass(frozen=True)
class Level:
    """One kind of wall. `command` goes before a fork server's; `nests`: each question is walled
    off from the others by namespaces of its own."""

    name: str
    command: tuple[str, ...] = ()
    nests: bool = False


def best_level(hide: Iterable[Path | str] = (), devices: Iterable[str] = ()) -> Level:
    """The best walls that stand here; `hide` and `devices` as in `sandbox_command`."""
    if why_no_bubblewrap() is None:
        return Level(BUBBLEWRAP, sandbox_command(hide, devices=devices), True)
    if why_no_landlock() is None and not _hidden(hide):
        return Level(LANDLOCK, confined_command(devices))
    return Level(NONE)


def confined_command(devices: Iterable[str] = ()) -> tuple[str, ...]:
    """The words to put before a Python command to have it confined by Landlock.

    `devices`: files of GPUs (gpus.device_files) that it may use.
    """
    uid = STRANGER if os.getuid() == 0 else os.getuid()
    path = {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "PYTHONPATH": str(LIBRARY.parent)}
    devices, readable = list(devices), [*SYSTEM, *SYSTEM_FILES, *map(str, _python_places())]
    environment = {**ENVIRONMENT, **path, **(gpus.environment() if devices else {})}
    settings = {"uid": uid, "environment": environment, "readable": readable, "devices": devices}
    return (
        sys.executable,
        str(LIBRARY / "runtime" / "walls" / "confined.py"),
        json.dumps(settings),
    )


def sandbox_command(hide: Iterable[Path | str] = (), bwrap: str = "bwrap",
                    devices: Iterable[str] = ()) -> tuple[str, ...]:  # fmt: skip
    """The words to put before a Python command so that bubblewrap walls it in.

    `hide` names directories that must stay out of sight even where they lie under /usr or in the
    Python environment: they are covered with an empty one. `devices`: files of GPUs
    (gpus.device_files) that are let in. Open file descriptors are inherited.
    """
    options = [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--clearenv"),
    ]
    devices = list(devices)
    more = gpus.environment() if devices else {}
    for name, value in {**ENVIRONMENT, **more, "PATH": f"{sys.prefix}/bin:/usr/bin:/bin"}.items():
        options += ["--setenv", name, value]
    options += ["--dev", "/dev", *gpus.bubblewrap_options(devices)]
    options += ["--proc", "/proc", "--tmpfs", "/tmp"]
    hidden = _hidden(hide)
    options += _system() + hidden + _python()
    for place in ("/dev", *hidden[1::2], "/"):  # or ranks, and submissions, would share them
        options += ["--remount-ro", place]
    options += ["--chdir", "/tmp", "--"]
    return (*_as_a_stranger(bwrap), bwrap, *options)


def runs_as_stranger() -> bool:
    """Whether root's sandbox belongs to a user of its own here."""
    return bool(_as_a_stranger("bwrap"))


@functools.cache
def _as_a_stranger(bwrap: str) -> tuple[str, ...]:
    """Words that make root's sandbox another user's, where that can be; tried, not guessed."""
    if os.getuid() != 0:
        return ()
    words = (sys.executable, str(LIBRARY / "runtime" / "walls" / "stranger.py"), str(STRANGER))
    walls = (bwrap, "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    try:
        done = subprocess.run(
            [*words, *walls, sys.executable, "-c", "import os; print(os.getuid())"],
            capture_output=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return words if done.stdout.strip() == str(STRANGER).encode() else ()


def _system() -> list[str]:
    """The operating system's programs and libraries, read-only, links kept as links."""
    options = []
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            options += ["--symlink", os.readlink(path), name]
        elif path.is_dir():
            options += ["--ro-bind", name, name]
    for name in SYSTEM_FILES:
        if os.path.exists(name):
            options += ["--ro-bind", name, name]
    return options


def _hidden(paths: Iterable[Path | str]) -> list[str]:
    """An empty directory over each path that lies in something bound, before Python is bound."""
    bound = [Path(name).resolve() for name in SYSTEM if Path(name).is_dir()]
    options = []
    for path in map(Path, paths):
        resolved = path.resolve()
        if resolved.is_dir() and any(resolved.is_relative_to(place) for place in bound):
            options += ["--tmpfs", str(resolved)]
    return options


def _python() -> list[str]:
    """This Python, its packages and this library, read-only: nothing else of where they live."""
    options = []
    for place in _python_places():
        options += ["--ro-bind", str(place), str(place)]
    return options


def _python_places() -> list[Path]:
    places = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    places |= {Path(place) for place in site.getsitepackages()}
    places = {place for place in places if place.is_dir() and place not in _too_wide()}
    outer = [place for place in sorted(places) if not any(p in place.parents for p in places)]
    return [*outer, LIBRARY]


def _too_wide() -> set[Path]:
    """Directories that would show more than Python: the root, /usr (bound already), a home."""
    return {Path("/"), Path("/usr"), Path.home(), Path.home().resolve()}


def why_no_sandbox() -> str | None:
    """None where walls stand, be they the second best; otherwise what is missing and what to do."""
    reason = why_no_bubblewrap()
    if reason is None or why_no_landlock() is None:
        return None
    return f"{reason}; and {why_no_landlock()}"


@functools.cache
def why_no_bubblewrap() -> str | None:
    """None where bubblewrap works; otherwise one sentence on what is missing and what to do.

    Tried, not guessed: a trivial Python runs inside, and makes the nested namespaces of a question.
    """
    if sys.platform != "linux":
        return f"the sandbox needs Linux namespaces, which {sys.platform} does not have"
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return f"bubblewrap is not installed: {INSTALL}"
    return _try(bwrap)


@functools.cache
def why_no_landlock() -> str | None:
    """None where Landlock can hold a submission; otherwise one sentence on what is missing.

    Without a user of its own, a submission must be kept from the judge's processes too.
    """
    if sys.platform != "linux" or landlock.version() == 0:
        return f"this kernel ({platform.release()}) has no Landlock"
    if os.getuid() != 0 and landlock.version() < landlock.SCOPES_SINCE:
        return (
            f"this kernel's Landlock (version {landlock.version()}) cannot keep a submission from"
            " its user's other processes: that needs Linux 6.12"
        )
    done = subprocess.run(
        [*confined_command(), sys.executable, "-c", "print('confined')"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.strip() == "confined":
        return None
    last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"Landlock cannot confine a program here ({last})"


def _try(bwrap: str) -> str | None:
    """Run the probe inside; None when it printed what it should."""
    try:
        done = subprocess.run(
            [*sandbox_command(bwrap=bwrap), sys.executable, "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap could not be run ({error})"
    if done.returncode == 0 and done.stdout.strip() == "walled in":
        return None
    last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return (
        f"bubblewrap cannot make namespaces here ({last}): allow user namespaces for this account"
        " (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0), or"
        " start the container with them"
    )


_PROBE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x00020000):
    raise SystemExit("nested namespaces: " + os.strerror(ctypes.get_errno()))
print("walled in")
"""
