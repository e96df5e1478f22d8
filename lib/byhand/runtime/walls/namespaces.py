"""Fresh Linux namespaces, entered by a forked process: a question's, or a virtual network's.

A question's are used inside the sandbox that already hides the file system: there each question
gets its own processes, network and /tmp, so that nothing it starts, binds or writes meets the next
one. A virtual network's only separate networks and their processes' numbers, and end with the
process that entered them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import site
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWIPC = 0x00020000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 1 << 18
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_CAPABILITY_VERSION_3, _PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE = 0x20080522, 38, 4
_KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)  # which no libc wraps
_KEYCTL_JOIN_SESSION_KEYRING = 1
LIBRARY = Path(__file__).resolve().parents[2]  # lib/byhand, and not the checkout around it
MAX_FILES = 10_000  # in an empty directory: files of no bytes take the kernel's memory, too
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter(scratch_bytes: int) -> None:
    """Move to new user, process, network, mount and IPC namespaces, with an empty /tmp, terminals
    and keys of its own, and a /proc that shows its own processes alone and is not written to.

    Returns in the first process of the new process namespace, without privileges, and gets none in
    a user namespace of its own making; no process of its own user may trace it or read its memory.
    Where memory runs out, the kernel ends what runs here first. The caller's process waits, and
    exits as it does.

    Raises:
        OSError: the kernel refuses; the message says which step.
    """
    _unshare(_CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWIPC)
    _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "private mounts")
    for folder in ("/tmp", "/dev/shm"):
        _cover(folder, scratch_bytes)
    _mount("devpts", "/dev/pts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.chdir("/tmp")
    _loopback_up()
    _own_keys()
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    Path("/proc/self/oom_score_adj").write_text("1000")
    _become_first_process()
    _mount("proc", "/proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    drop_privileges()
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def enter_as_administrator() -> None:
    """Move to new user, process, network and mount namespaces, free to make and join more networks.

    Returns in the first process of the new process namespace, as `enter` does: as root there, so
    that the programs it starts may administer its networks too. /proc shows its processes by their
    own numbers, where that is allowed; what is mounted outside from now on appears here, too.

    Raises:
        OSError: the kernel refuses; the message says which step.
    """
    _unshare(_CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWNS, as_root=True)
    _become_first_process()
    with contextlib.suppress(OSError):  # some containers forbid it: /proc then has other numbers
        _mount("proc", "/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _own_keys() -> None:
    """Leave the session's keys, which the kernel keeps for whoever logged in, for an empty set."""
    if _KEYCTL and _libc.syscall(_KEYCTL, _KEYCTL_JOIN_SESSION_KEYRING, None) < 0:
        if ctypes.get_errno() == errno.EDQUOT:  # else there are no keys here at all
            _check(-1, "a session keyring")


def own_network() -> int:
    """A descriptor of the network namespace this process is in."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def new_network() -> int:
    """Move to a new network namespace; a descriptor of it, which programs started here inherit."""
    _check(_libc.unshare(_CLONE_NEWNET), "a network namespace")
    descriptor = own_network()
    os.set_inheritable(descriptor, True)
    return descriptor


def set_network(descriptor: int) -> None:
    """Move to the network namespace of a descriptor."""
    _check(_libc.setns(descriptor, _CLONE_NEWNET), "joining a network namespace")


def _unshare(flags: int, as_root: bool = False) -> None:
    """Enter new namespaces in a new user namespace, as the same user and group, or as root of it.

    Who is root there could make no further user namespace once its privileges are dropped.
    """
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(_CLONE_NEWUSER | flags), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{0 if as_root else uid} {uid} 1"),
        ("gid_map", f"{0 if as_root else gid} {gid} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)


def _become_first_process() -> None:
    """Go on in a child, the first of the new process namespace; the caller exits as it does."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def python_folders() -> list[Path]:
    """This Python, its packages and this library: nothing else of where they live."""
    folders = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.executable).resolve().parent.parent,
    }
    folders |= {Path(folder) for folder in site.getsitepackages()}
    too_wide = {Path("/"), Path("/usr"), Path.home(), Path.home().resolve()}  # /usr is bound anyway
    folders = {folder for folder in folders - too_wide if folder.is_dir()}
    outer = [folder for folder in sorted(folders) if not folders & set(folder.parents)]
    return [*outer, LIBRARY]


def _cover(folder: str, num_bytes: int) -> None:
    """Mount an empty directory over `folder`; Python's own directories below it stay in sight."""
    kept = [str(path) for path in python_folders() if path.is_relative_to(folder)]
    handles = [(path, os.open(path, os.O_PATH | os.O_DIRECTORY)) for path in kept]
    options = f"size={num_bytes},nr_inodes={MAX_FILES},mode=1777"
    _mount("tmpfs", folder, _MS_NOSUID | _MS_NODEV, options)
    for path, handle in handles:
        os.makedirs(path, exist_ok=True)
        source = f"/proc/self/fd/{handle}".encode()
        _check(_libc.mount(source, path.encode(), None, _MS_BIND | _MS_REC, None), f"keep {path}")
        os.close(handle)


def _mount(kind: str, folder: str, flags: int, options: str = "") -> None:
    mounted = _libc.mount(kind.encode(), folder.encode(), kind.encode(), flags, options.encode())
    _check(mounted, f"mount on {folder}")


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(probe, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def drop_privileges() -> None:
    """Give up every capability, for good."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, struct.pack("6I", *[0] * 6)), "capset")
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


if __name__ == "__main__":
    enter(1 << 20)
    print("walled in")
