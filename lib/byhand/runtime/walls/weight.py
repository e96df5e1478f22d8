"""What all processes below a fork server hold together, often asked for and so read from /proc."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping


def held() -> tuple[int, set[int]]:
    """Bytes of memory of all processes below this one, and their numbers in /proc.

    What a process had from this one when it was forked weighs nothing.
    """
    here, found = int(os.readlink("/proc/self")), _processes()
    own, below = found[here][1], _below(here, found)
    return sum(max(0, found[process][1] - own) for process in below), below


def num_sockets() -> int:
    """Sockets of every kind in this network namespace; each may hold what its buffers take."""
    with open("/proc/net/sockstat") as file:
        return int(file.readline().split()[2])


def _processes() -> dict[int, tuple[int, int]]:
    """Every process's parent, and the bytes of memory that it has.

    One file for each is read: psutil, which reads four, took most of a flooded processor.
    """
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            found[int(process)] = int(fields[1]), int(fields[21]) * resource.getpagesize()
    return found


def _below(process: int, found: Mapping[int, tuple[int, int]]) -> set[int]:
    """The children of a process, and theirs."""
    below, more = set(), {process}
    while more:
        more = {child for child, (parent, _) in found.items() if parent in more} - below
        below |= more
    return below
