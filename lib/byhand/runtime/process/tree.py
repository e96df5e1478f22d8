"""What the kernel tells about processes: their children, their parents, their time."""

from __future__ import annotations

import os
import re
import time


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used (the kernel's clock number for a process is made from its id)."""
    return time.clock_gettime((~pid << 3) | 2)


def children_of(parent: int) -> set[int]:
    """Process ids of the direct children of `parent`."""
    try:
        text = open(f"/proc/{parent}/task/{parent}/children").read()
        return {int(pid) for pid in text.split()}
    except OSError:
        return {
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if parent_of(pid) == parent
        }


def parent_of(pid: int) -> int | None:
    """The parent of a process; None when it is gone."""
    try:
        return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def descendants_of(ancestor: int) -> set[int]:
    """Process ids of the children of `ancestor`, their children, and so on."""
    found, new = set(), {ancestor}
    while new:
        new = set().union(*map(children_of, new)) - found
        found |= new
    return found


def memory_bytes(pid: int) -> int:
    """Memory that a process maps and has written to: its own, and what it shares but no file."""
    try:
        text = open(f"/proc/{pid}/status").read()
    except OSError:
        return 0
    return sum(map(int, re.findall(r"^(?:RssAnon|RssShmem):\s+(\d+) kB", text, re.M))) << 10
