"""Where a notebook is now: its folder, its module path and its environment, told to its ranks."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any

# What a rank has of its own, or its fork server; not even a notebook that sets it changes it.
OWN = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),  # `setup` sets the first in a notebook, too
)
_OURS = "BYHAND_"


def whereabouts(before: Mapping[str, str]) -> dict[str, Any]:
    """Where this process is, as plain data. `before`: the environment that its ranks began with."""
    return {"path": list(map(str, sys.path)), "directory": folder(), "environ": changes(before)}


def folder() -> str | None:
    """The working directory; None where it has been removed."""
    with contextlib.suppress(FileNotFoundError):
        return os.getcwd()
    return None


def changes(before: Mapping[str, str]) -> dict[str, str | None]:
    """By name, what the environment has now and had not before; None for what is gone."""
    now = os.environ.copy()
    names = before.keys() | now.keys()
    return {name: now.get(name) for name in names if now.get(name) != before.get(name)}


def go_there(there: Mapping[str, Any]) -> None:
    """On a rank: be where `whereabouts` was, as far as that can be reached from here."""
    sys.path[:] = there["path"]
    if there["directory"] is not None:
        with contextlib.suppress(OSError):
            os.chdir(there["directory"])
    for name, value in there["environ"].items():
        if name in OWN or name.startswith(_OURS):
            continue
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
