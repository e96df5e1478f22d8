"""Fresh Linux namespaces for one question's ranks, entered by a forked process.

Used inside the sandbox that already hides the file system: here each question gets its own
processes, network and /tmp, so that nothing it starts, binds or writes meets the next one.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys

_CLONE_NEWNS, _CLONE_NEWIPC = 0x00020000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 0x1000, 0x4000, 1 << 18
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter(scratch_bytes: int) -> None:
    """Move to new user, process, network, mount and IPC namespaces, with an empty /tmp.

    Returns in the first process of the new process namespace, without privileges; the caller's
    process waits for it and exits as it does.

    Raises:
        OSError: the kernel refuses; the message says which step.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWIPC
    _check(_libc.unshare(flags), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "private mounts")
    for place in ("/tmp", "/dev/shm"):
        if os.path.isdir(place):
            _cover(place, scratch_bytes)
    os.chdir("/tmp")
    _loopback_up()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _drop_privileges()


def _cover(place: str, num_bytes: int) -> None:
    """Mount an empty directory over `place`; Python's own directories below it stay in sight."""
    needed = (*sys.path, sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(__file__)))
    inside = {os.path.realpath(path) for path in needed if path}
    kept = sorted(path for path in inside if path.startswith(place + "/") and os.path.isdir(path))
    handles = [(path, os.open(path, os.O_PATH | os.O_DIRECTORY)) for path in kept]
    options = f"size={num_bytes},mode=1777".encode()
    mounted = _libc.mount(b"tmpfs", place.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, options)
    _check(mounted, f"mount on {place}")
    for path, handle in handles:
        os.makedirs(path, exist_ok=True)
        source = f"/proc/self/fd/{handle}".encode()
        _check(_libc.mount(source, path.encode(), None, _MS_BIND | _MS_REC, None), f"keep {path}")
        os.close(handle)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(probe, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _drop_privileges() -> None:
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, struct.pack("6I", *[0] * 6)), "capset")
    _libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
