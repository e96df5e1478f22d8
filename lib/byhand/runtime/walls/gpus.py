"""GPUs for ranks that nobody trusts: what a sandbox lets in for CUDA, and what bounds it there.

CUDA asks more of a sandbox than torch on the CPU does: the driver's device files, open for reading
and writing, and /sys, without which cuInit gives error 304. What bounds GPU memory is no wall:
torch is told to take no more than `device_bytes`, and a submission can tell it otherwise. So can it
keep a GPU busy, or fill it, as long as its question lasts; and the driver is one more thing it
might break. Main memory is bounded for each process, and not for a team: CUDA maps all of a GPU's.

NCCL is told to use sockets over loopback: nothing travels by NVLink.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MORE = {  # than on the CPU, of a rank's limits
    "memory_bytes": 8 << 30,  # of main memory, that CUDA and its libraries write to
    "processes": 112,  # threads that CUDA, NCCL and autograd start, by the group and the GPU
    "open_files": 768,
}
PATIENCE = 4  # a fresh rank takes a second or more to start CUDA, and a test starts dozens
SETTINGS = {
    "CUDA_CACHE_DISABLE": "1",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_IB_DISABLE": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_P2P_DISABLE": "1",
    "NCCL_RAS_ENABLE": "0",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_SOCKET_IFNAME": "lo",
}
INHERITED = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")  # which GPUs a scheduler has given us


@dataclass(frozen=True)
class Gpus:
    """How many GPUs the ranks of a sandbox have, and the backend of launches that say "auto".

    With none, ranks keep to the CPU and to gloo, whatever `backend` is.
    """

    count: int = 0
    backend: str = "auto"

    def __str__(self) -> str:
        """What is recorded with a grade."""
        if not self.count:
            return "gloo on the CPU"
        return f"{self.backend} on {self.count} GPU{'s' if self.count > 1 else ''}"

    @property
    def files(self) -> tuple[str, ...]:
        """The device files that a sandbox lets in."""
        return device_files() if self.count else ()

    @property
    def trial(self) -> int:
        """How many ranks try the GPUs: NCCL wants one for each, and gloo lets two share one."""
        return self.count + (self.backend == "gloo")

    @property
    def patience(self) -> int:
        """What limits in seconds are multiplied by."""
        return PATIENCE if self.count else 1

    def limits(self, limits: Mapping[str, int]) -> dict[str, int]:
        """These limits of a rank: memory_bytes bounds GPU memory, and with MORE main memory."""
        if not self.count:
            return dict(limits)
        changed = {name: limit + MORE.get(name, 0) for name, limit in limits.items()}
        return {**changed, "device_bytes": limits["memory_bytes"]}


NO_GPUS = Gpus()


def device_files(folder: Path | str = "/dev") -> tuple[str, ...]:
    """The files through which programs reach NVIDIA's driver, as far as they are in `folder`."""
    names = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps")
    cards = sorted(path for path in Path(folder).glob("nvidia*") if path.name[6:].isdigit())
    others = [Path(folder) / name for name in names]
    return tuple(str(path) for path in [*cards, *others] if path.exists())


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a sandbox with GPUs sets, and what of this process's environment it lets in."""
    found = {name: environ[name] for name in INHERITED if name in environ}
    libraries = environ.get("LD_LIBRARY_PATH", "").split(":")
    system = [path for path in libraries if os.path.normpath(path).startswith("/usr/")]
    return SETTINGS | found | ({"LD_LIBRARY_PATH": ":".join(system)} if system else {})


def bubblewrap_options(files: Iterable[str]) -> list[str]:
    """Options that let these device files into a sandbox, after its own `--dev`, and /sys."""
    options = [word for path in files for word in ("--dev-bind", path, path)]
    return [*options, "--ro-bind", "/sys", "/sys"] if options else []
