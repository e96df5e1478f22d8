"""Become another user, who still sees this Python wherever it lies.

    python stranger.py USER_ID COMMAND...

Limits on processes bind no root, and root's files are many: so root's submissions belong to a user
with neither. Where Python lies in a directory that only root may enter, the command sees an empty
directory there, with nothing in it but Python. Run as a file, so that nothing imports torch.
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

if __name__ == "__main__":  # the packages as bare names, or importing them would import torch
    place = os.path.dirname(os.path.abspath(__file__))
    for name in ("byhand.runtime.walls", "byhand.runtime", "byhand"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [place]
        place = os.path.dirname(place)

from byhand.runtime.walls import namespaces


def become(uid: int) -> None:
    """Give up root for this user and group.

    Raises:
        OSError: this process may not, or the kernel refuses the mounts.
    """
    closed = sorted(_closed())
    if closed:
        namespaces.cover(closed)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _closed() -> set[str]:
    """The outermost directories on the way to Python that others than root may not enter."""
    places = {Path(os.path.realpath(path)) for path in namespaces.python_places()}
    ways = ([*reversed(place.parents), place] for place in places if place.is_dir())
    shut = (next((str(p) for p in way if p.stat().st_mode & 0o001 == 0), None) for way in ways)
    return {place for place in shut if place}


if __name__ == "__main__":
    become(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
