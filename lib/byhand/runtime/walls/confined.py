"""The second-best walls, where bubblewrap cannot run: Landlock, limits, and a user of their own.

    python confined.py SETTINGS COMMAND...

runs COMMAND with only the files it needs, in an empty directory that is removed afterwards: as
another user where this one is root, and without a network but its own where the kernel allows. Run
as a file and not as a module, so that nothing imports torch before the walls stand.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import sys
import tempfile
import types

if __name__ == "__main__":  # the packages as bare names, or importing them would import torch
    place = os.path.dirname(os.path.abspath(__file__))
    for name in ("byhand.runtime.walls", "byhand.runtime", "byhand"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [place]
        place = os.path.dirname(place)

from byhand.runtime.walls import landlock, namespaces, stranger

MARK, GPUS = "BYHAND_SCRATCH", "BYHAND_GPU_FILES"
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def main() -> None:
    """Confine a child, run the command in it, and clear its directory away."""
    settings, command = json.loads(sys.argv[1]), sys.argv[2:]
    open_to_all = "/tmp" if settings["uid"] != os.getuid() else None
    scratch = tempfile.mkdtemp(prefix="byhand-", dir=open_to_all)
    os.chown(scratch, settings["uid"], settings["uid"])
    child = os.fork()
    if child == 0:
        _confine(settings, scratch)
        own = {MARK: scratch, GPUS: ":".join(settings["devices"]), "HOME": scratch,
               "TMPDIR": scratch}  # fmt: skip
        os.execvpe(command[0], command, {**settings["environment"], **own})
    os.closerange(3, 4096)  # the socket is the child's, and its end is to be seen at once
    ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)  # PR_SET_PDEATHSIG: end with whoever started this
    _, status = os.waitpid(child, 0)
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _confine(settings: dict, scratch: str) -> None:
    uid = settings["uid"]
    with contextlib.suppress(OSError):
        namespaces.leave_the_network()
    if os.getuid() != uid:
        stranger.become(uid)
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
    os.chdir(scratch)
    writable = [scratch, *DEVICES[:2], *settings["devices"]]
    landlock.confine([*settings["readable"], "/proc", "/sys", *DEVICES], writable)


def own_folder() -> None:
    """In a confined fork server: keep from now on to an empty directory below its own."""
    folder = tempfile.mkdtemp(dir=os.environ[MARK])
    os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder)
    tempfile.tempdir = folder
    gpus = filter(None, os.environ[GPUS].split(":"))
    landlock.confine(["/"], [folder, *DEVICES[:2], *gpus])


if __name__ == "__main__":
    main()
