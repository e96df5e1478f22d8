"""bubblewrap around code that nobody has read: how it is called, and whether it stands here.

Inside: own user, process, network, IPC, host-name and mount namespaces; the system, this Python and
this library read-only; an empty /tmp and an empty home; a cleared environment. Outside, and out of
sight: the checkout (solutions, tests), the gradebook, the journal, other submissions, every home.
Each question gets a second wall inside this one (namespaces.py), and so does the student's
notebook: it shares no process, terminal, key or file with the ranks, and what they need of it is
taken before the first of them starts (snapshot.py).

It works for root and for ordinary users. Root makes the walls as root, and what runs behind them is
a user of its own, whom limits on processes bind. Where it does not stand, nothing is graded.

Not promised. Ranks of one question that mean to can pass values to each other past
torch.distributed, and then send zeros for the ledger: by files, sockets, memory, terminals, the
store in which they meet. A log is written by the rank that it tells of. A rank can end the other
ranks of its own question, too. All that wins or costs is that question. What a question's processes
hold in memory is weighed, and so are its segments of System V (limits.py). Files in memory without
a name weigh only where this account may make a cgroup, as root may (cgroup.py), and what the kernel
keeps of its own, for sockets and page tables, nowhere: where that runs out, the kernel ends ranks
first. An instructor sees suspicious names, and a coarse count of the question's loopback beside its
ledger. A submission's notebook has ended before its first test begins, and every question's
processes have ended before the next: a rank in a hidden part finds none of its own submission's to
tell what it was given. But which files are cached, and time, the whole kernel shares, and a later
question can look; and two submissions that are judged at one time and mean to can tell each other
more, by locks on libraries and devices. Where there is vsock, a rank reaches the machine's host.
Whoever breaks the kernel breaks out.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from byhand.runtime.process.client import ENVIRON
from byhand.runtime.system import PORTABLE
from byhand.runtime.walls import gpus, namespaces
from byhand.runtime.walls.namespaces import python_folders

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/etc/hosts",  # or "localhost" names no machine
)
ENVIRONMENT = {
    **ENVIRON,
    "HOME": "/tmp",
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "TORCHINDUCTOR_CACHE_DIR": "/tmp",
}
# Root may make the walls without a user namespace, and then go on as somebody else:
ROOTS = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
# bubblewrap covers parts of root's /proc, and a question may mount its own only where none is:
UNCOVER = 'umount $(cut -d " " -f 5 /proc/self/mountinfo | grep ^/proc/); exec "$@"'
STRANGER = 61_183  # the user that root's submissions run as: no account, and no files


def sandbox_command(hide: Iterable[Path | str] = (), devices: Sequence[str] = ()) -> list[str]:
    """The words to put before a Python command so that bubblewrap walls it in.

    `hide` names directories that must stay out of sight even where they lie under /usr or in the
    Python environment: they are covered with an empty one. `devices`: files of GPUs
    (gpus.device_files) that are let in. Open file descriptors are inherited.
    """
    options = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    options += ["--die-with-parent", "--new-session", "--clearenv"]
    for name, value in {**ENVIRONMENT, **(gpus.environment() if devices else {})}.items():
        options += ["--setenv", name, value]
    options += ["--dev", "/dev", *gpus.bubblewrap_options(devices)]
    options += ["--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp"]
    hidden = _hidden(hide)
    options += _system() + hidden + bound(python_folders())
    for folder in ("/dev", *hidden[1::2], "/"):  # or ranks, and submissions, would share them
        options += ["--remount-ro", folder]
    as_whom, then = ["--unshare-user", "--uid", "1000", "--gid", "1000"], []
    if os.getuid() == 0:
        as_whom = [*ROOTS, "--cap-add", "CAP_SYS_ADMIN"]
        then = ["sh", "-c", UNCOVER, "sh", *setpriv(STRANGER)]
    return ["bwrap", *as_whom, *options, "--chdir", "/tmp", "--", *then]


def setpriv(user: int) -> list[str]:
    """The words by which root runs a command as this user."""
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "--"]


def _system() -> list[str]:
    """The operating system's programs and libraries, read-only, links kept as links."""
    options = ["--perms", "755", "--dir", "/etc"]  # or whoever root becomes cannot look into it
    for name in (*SYSTEM, *SYSTEM_FILES):
        if name in SYSTEM and os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
        else:
            options += ["--ro-bind-try", name, name]
    return options


def _hidden(paths: Iterable[Path | str]) -> list[str]:
    """An empty directory over each path that lies in something bound, before Python is bound."""
    bound = [Path(name).resolve() for name in SYSTEM if Path(name).is_dir()]
    options = []
    for path in map(Path, paths):
        resolved = path.resolve()
        if resolved.is_dir() and any(resolved.is_relative_to(folder) for folder in bound):
            options += ["--tmpfs", str(resolved)]
    return options


def bound(paths: list[Path]) -> list[str]:
    """These directories, read-only, and the way to each open to every user: nothing else there."""
    above = {str(parent): None for path in paths for parent in [*reversed(path.parents)][1:]}
    options = [word for parent in above for word in ("--perms", "755", "--dir", parent)]
    return options + [word for path in paths for word in ("--ro-bind", str(path), str(path))]


@functools.cache
def why_no_sandbox() -> str | None:
    """None where bubblewrap works; otherwise one sentence on what is missing and what to do.

    Tried, not guessed: a Python inside makes the nested namespaces of a question.
    """
    if PORTABLE:
        return "the sandbox needs Linux, and ranks start by the portable path"
    if shutil.which("bwrap") is None:
        install = "apt-get install bubblewrap (as root), or your system's equivalent"
        return f"bubblewrap is not installed: {install}"
    try:
        done = subprocess.run(
            [*sandbox_command(), sys.executable, namespaces.__file__],
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
