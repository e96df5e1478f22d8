"""What this machine can do for the course, and what to install for the rest.

    python -m byhand.tools.doctor

Everything is tried, not guessed: ranks are started, a sandbox is made, two hosts are joined by a
slow link. What an instructor installs besides (nbgrader, Slurm), the commands that need it ask for.
Each check imports what it needs, so that a missing package is a line of the table, too.
Exit status 0: the lectures run here. 1: something they need is missing.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence

from byhand.words import counted

OLDEST_TORCH = (2, 9)  # pyproject.toml says the same
ON_PORTABLE = (
    "macOS: launches take a portable path (not grading, not the virtual network); tried on Linux"
    " with the calls that macOS lacks taken away, not on a Mac."
)
ON_WSL = "Windows (WSL 2): keep the course in Linux's own file system, /mnt/c is slow; not tried"


class Missing(Exception):
    """What was looked for is not there: why, and how to mend it."""

    def __init__(self, why: str, fix: str):
        super().__init__(why)
        self.fix = fix


# Each looks for one thing, and returns what it found.


def system() -> str:
    """What of the course this operating system carries."""
    from byhand.runtime.system import PORTABLE

    name = platform.uname()
    found = ON_WSL if "microsoft" in name.release.lower() else f"{name.system} {name.release}"
    found = f"{found}, Python {platform.python_version()}"
    return f"{found}. As on {ON_PORTABLE}" if PORTABLE else found


def torch_version() -> str:
    """torch, and not one from before OLDEST_TORCH."""
    import torch

    numbers = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if numbers < OLDEST_TORCH:
        again = "pip install --upgrade torch, or in the course's folder: make course"
        raise Missing(torch.__version__, again)
    return torch.__version__


def gpus() -> str:
    """GPUs by name, and what they are for."""
    import torch
    import torch.distributed as dist

    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if not names:
        return "CPU only, which is all the course needs; autograder grade --backend changes nothing"
    how = "gloo, as NCCL is not built into this torch"
    if dist.is_nccl_available():
        how = f"NCCL up to {counted(len(names), 'rank')}, gloo beyond"
    return f"{', '.join(names)}: ranks use {how}; graded ones with autograder grade --backend auto"


def cores() -> str:
    """Cores this process may use: ranks beyond them take turns."""
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    else:
        usable = os.cpu_count() or 1  # None where the system does not say
    return f"{counted(usable, 'core')}; so many ranks compute at once, more take turns"


def ranks() -> str:
    """Two real ranks and one all-reduce."""
    from byhand.runtime import LaunchError, launch

    try:
        run = launch(_sum_of_ranks, 2, backend="gloo", deadline=30.0)
    except (LaunchError, OSError) as error:
        raise Missing(str(error).splitlines()[0], "see the message") from None
    if run.results != [1, 1]:
        raise Missing(f"the sum came out as {run.results}, not [1, 1]", "another build of torch")
    return f"2 ranks and one all-reduce in {run.seconds * 1000:.0f} ms"


def bubblewrap() -> str:
    """The walls around student code."""
    from byhand.runtime.walls.cgroup import Cgroup
    from byhand.runtime.walls.isolation import STRANGER, why_no_sandbox

    if why_not := why_no_sandbox():
        raise Missing(why_not, "needed only to grade other people's notebooks")
    as_whom = f", as user {STRANGER} and not as root" if os.getuid() == 0 else ""
    cgroup = Cgroup.make()
    if cgroup:
        cgroup.close()
        return f"student code is walled in{as_whom}; a cgroup weighs its memory"
    return (
        f"student code is walled in{as_whom}; its memory is weighed by process and System V"
        " segment, as no cgroup may be made: files in memory weigh nothing"
    )


def virtual_network() -> str:
    """Hosts on this machine, joined by links of a chosen rate."""
    from byhand.runtime import why_no_network

    if why_not := why_no_network():
        fix = "without one, lectures show figures recorded where there was one"
        raise Missing(why_not, fix)
    return "hosts joined by links of a chosen rate"


CHECKS: dict[str, Callable[[], str]] = {
    "system": system,
    "torch": torch_version,
    "GPUs": gpus,
    "cores": cores,
    "ranks": ranks,
    "bubblewrap": bubblewrap,
    "virtual network": virtual_network,
}
NEEDED = ("torch", "ranks")  # by the lectures


def main(words: Sequence[str] = ()) -> int:
    """Print a line for each check, a fix below what is missing; 0 when the lectures run here."""
    argparse.ArgumentParser("python -m byhand.tools.doctor", description=__doc__).parse_args(words)
    print(f"{'':16} {'here':5} found")
    missing = []
    for name, check in CHECKS.items():
        try:
            print(f"{name:16} {'yes':5} {_tried(check)}")
        except Missing as why:
            print(f"{name:16} {'no':5} {why}\n{'':22} → {why.fix}")
            missing += [name] if name in NEEDED else []
    if missing:
        print(f"\nThe lectures will not run here before this is mended: {', '.join(missing)}.")
        return 1
    print("\nThe lectures run here.")
    return 0


def _tried(check: Callable[[], str]) -> str:
    try:
        return check()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        fix = f"pip install {package}, or in the course's folder: make course"
        raise Missing(f"{package} is not installed", fix) from None


def _sum_of_ranks(rank: int, world_size: int) -> int:
    import torch
    import torch.distributed as dist

    total = torch.tensor(rank)
    dist.all_reduce(total)
    return int(total)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
