"""What this machine can do for the course, and what to install for the rest.

    python -m byhand.tools.doctor

Everything is tried, not guessed: ranks are started, a sandbox is made, two hosts are joined by a
slow link. Exit status 0: the lectures run here. 1: something they need is missing.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from byhand.runtime import LaunchError, launch, why_no_network
from byhand.runtime.system import PORTABLE
from byhand.runtime.walls.isolation import STRANGER, why_no_sandbox
from byhand.words import counted

OLDEST_TORCH = (2, 9)  # pyproject.toml says the same
INSTALL_TORCH = "pip install --upgrade torch, or in the course's folder: make course"
ON_PORTABLE = (
    "macOS: launches take a portable path (not grading, not the virtual network); tried on Linux"
    " with the calls that macOS lacks taken away, not on a Mac."
)
ON_WSL = "Windows (WSL 2): keep the course in Linux's own file system, /mnt/c is slow; not tried"


@dataclass(frozen=True)
class Finding:
    """One row: what was looked for, whether it works here, what was found, how to mend it.

    `needed` is False where the lectures run without it.
    """

    what: str
    works: bool
    found: str
    fix: str = ""
    needed: bool = True


def python() -> Finding:
    """Python 3.11 or newer."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")


def system() -> Finding:
    """What of the course this operating system carries."""
    name = platform.uname()
    found = ON_WSL if "microsoft" in name.release.lower() else f"{name.system} {name.release}"
    return Finding(
        "system", True, f"{found}. As on {ON_PORTABLE}" if PORTABLE else found, "", False
    )


def torch_version() -> Finding:
    """torch, and not one from before OLDEST_TORCH."""
    numbers = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    return Finding("torch", numbers >= OLDEST_TORCH, torch.__version__, INSTALL_TORCH)


def gloo() -> Finding:
    """The backend for CPU tensors, and for ranks that share a GPU."""
    works = dist.is_available() and dist.is_gloo_available()
    found = "built into this torch" if works else "not built into this torch"
    return Finding("gloo", works, found, INSTALL_TORCH)


def nccl() -> Finding:
    """The backend for one GPU per rank."""
    built_in = dist.is_available() and dist.is_nccl_available()
    if not built_in:
        found = "not built into this torch; gloo is used"
        return Finding("NCCL", False, found, "a CUDA build of torch, and a GPU per rank", False)
    gpus = torch.cuda.device_count()
    found = f"built in, {counted(gpus, 'GPU')}: up to {counted(gpus, 'rank')}"
    return Finding("NCCL", gpus > 0, found, "a GPU per rank; without, gloo is used", False)


def devices() -> Finding:
    """GPUs by name, or the CPU."""
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    found = ", ".join(names) or "CPU only, which is all the course needs"
    return Finding("devices", True, found, needed=False)


def cores() -> Finding:
    """Cores this process may use: ranks beyond them take turns."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = f"{counted(usable, 'core')}; so many ranks compute at once, more take turns"
    return Finding("cores", True, found, needed=False)


def ranks() -> Finding:
    """Two real ranks and one all-reduce."""
    try:
        run = launch(_sum_of_ranks, 2, backend="gloo", deadline=30.0)
    except (LaunchError, OSError) as error:
        return Finding("ranks", False, str(error).splitlines()[0], "see the message")
    works = run.results == [1, 1]
    found = f"2 ranks and one all-reduce in {run.seconds * 1000:.0f} ms"
    return Finding("ranks", works, found, f"the sum came out as {run.results}, not [1, 1]")


def bubblewrap() -> Finding:
    """The walls around student code."""
    why_not = why_no_sandbox()
    as_whom = f", as user {STRANGER} and not as root" if os.getuid() == 0 else ""
    fix = "needed only to grade other people's notebooks"
    return Finding(
        "bubblewrap", why_not is None, why_not or f"student code is walled in{as_whom}", fix, False
    )


def virtual_network() -> Finding:
    """Hosts on this machine, joined by links of a chosen rate."""
    why_not = why_no_network()
    fix = "without one, lectures show figures recorded where there was one"
    found = "hosts joined by links of a chosen rate"
    return Finding("virtual network", why_not is None, why_not or found, fix, False)


def grading() -> Finding:
    """Where `autograder grade` judges a class."""
    gpus = torch.cuda.device_count() if dist.is_nccl_available() else 0
    found = "on the CPU, by gloo; --backend changes nothing here"
    if gpus:
        by = f"by NCCL up to {counted(gpus, 'rank')}, by gloo beyond"
        found = f"on the CPU, by gloo; with --backend auto: {by}"
    return Finding("grading", True, found, needed=False)


def slurm() -> Finding:
    """A Slurm cluster that answers."""
    fix = "needed only on a cluster: apt-get install slurm-wlm munge"
    if not shutil.which("sinfo"):
        return Finding("Slurm", False, "sinfo is not installed", fix, False)
    command, options = ["sinfo", "--noheader", "--format=%D nodes in %P"], {"timeout": 20}
    options |= {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    try:
        done = subprocess.run(command, **options)
    except subprocess.TimeoutExpired as error:
        return Finding("Slurm", False, str(error), "start slurmctld", False)
    partitions = ", ".join(done.stdout.strip().splitlines())
    last = (done.stderr.strip().splitlines() or ["no partition"])[-1]
    works = done.returncode == 0 and bool(partitions)
    found = partitions if works else last
    return Finding("Slurm", works, found, "start slurmctld and slurmd", False)


def nbgrader() -> Finding:
    """nbgrader, and the bare `alembic` it calls."""
    try:
        version = importlib.metadata.version("nbgrader")
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            "nbgrader", False, "not installed", "pip install 'byhand[instructor]'", False
        )
    beside = str(Path(sys.prefix) / "bin")  # autograder looks here too, whatever PATH is
    if not shutil.which("alembic", path=os.pathsep.join([os.environ.get("PATH", ""), beside])):
        found = f"{version}, but its alembic is neither on PATH nor in {beside}"
        return Finding("nbgrader", False, found, "pip install alembic", False)
    return Finding("nbgrader", True, f"{version}, and its alembic", needed=False)


CHECKS: tuple[Callable[[], Finding], ...] = (
    system,
    python,
    torch_version,
    gloo,
    nccl,
    devices,
    cores,
    ranks,
    bubblewrap,
    virtual_network,
    slurm,
    nbgrader,
    grading,
)


def table(findings: Iterable[Finding]) -> str:
    """The findings as lines of text, a fix below each that does not work."""
    lines = [f"{'':16} {'here':5} found"]
    for finding in findings:
        here = "yes" if finding.works else "no"
        lines.append(f"{finding.what:16} {here:5} {finding.found}")
        if not finding.works and finding.fix:
            lines.append(f"{'':22} → {finding.fix}")
    return "\n".join(lines)


def main() -> int:
    """Print the table; 0 when everything the lectures need works."""
    findings = [check() for check in CHECKS]
    print(table(findings))
    missing = [finding.what for finding in findings if finding.needed and not finding.works]
    if missing:
        print(f"\nThe lectures will not run here before this is mended: {', '.join(missing)}.")
        return 1
    print("\nThe lectures run here.")
    return 0


def _sum_of_ranks(rank: int, world_size: int) -> int:
    total = torch.tensor(rank)
    dist.all_reduce(total)
    return int(total)


if __name__ == "__main__":
    sys.exit(main())
