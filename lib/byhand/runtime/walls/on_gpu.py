"""A graded rank on its GPU: its arguments, its new tensors, and its messages.

Exercises say nothing of devices, and a right answer is right on the CPU. So that it is right on a
GPU too, a rank of a sandbox that has GPUs moves the arguments there before the function sees them,
makes new tensors there, and draws random numbers on the CPU before it moves them. Sends and
receives go through main memory, by gloo: it cannot send from a GPU, and NCCL can, but gives
messages between two ranks an order that no exercise speaks of. Collectives are the backend's own.
What still differs from the CPU: `.numpy()`, and what a student places on the CPU by name.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.overrides import TorchFunctionMode

from byhand.runtime.errors import LaunchError
from byhand.runtime.process import world as process_group
from byhand.runtime.trace.hooks import BELOW
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.trace.memory import HeldBytes
from byhand.runtime.trace.recorder import Recorder
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.limits import Walls

_SENDS, _RECEIVES = ("send",), ("recv_", "recv_any_source_")
_RANDOM = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}
SPARE = 1 << 28  # bytes that CUDA itself takes of a GPU, for each rank


@dataclass
class GpuWalls(Walls):
    """Walls around ranks that have `gpus`, and so what "auto" means; a limit more: device_bytes."""

    gpus: Gpus = NO_GPUS
    device = torch.device("cpu")

    def weigh(self, world_size: int) -> None:
        """In the fork server: nothing, for CUDA maps as much as the GPUs hold."""

    def backend(self, backend: str, world_size: int) -> str:
        """In the judge: the backend of a launch that asks for this one.

        Raises:
            ValueError: it cannot run here. LaunchError: nobody asked for what cannot.
        """
        if backend != "auto":
            return process_group.choose_backend(backend, world_size, self.gpus.count)
        try:
            return process_group.choose_backend(self.gpus.backend, world_size, self.gpus.count)
        except ValueError as error:
            raise LaunchError(str(error)) from None

    def close_in(self, rank: int, world_size: int) -> None:
        """On a rank: that too, and its GPU, with a cap on what torch takes of it."""
        super().close_in(rank, world_size)
        self.device = process_group.device(rank)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            has = torch.cuda.get_device_properties(self.device).total_memory
            share = min(1.0, self.limits["device_bytes"] / has)
            torch.cuda.set_per_process_memory_fraction(share, self.device)
            torch.backends.cudnn.allow_tf32 = False  # convolutions are as exact as on the CPU

    def load(self, data: bytes) -> Any:
        """On a rank: the call, every tensor in it on its device, wherever in it that is.

        Storages are read onto the device; views, strides and gradients stay as they are.
        """

        def read(storage: bytes) -> Any:
            return torch.load(io.BytesIO(storage), map_location=self.device, weights_only=False)

        with placed(self.device), patch.object(torch.storage, "_load_from_bytes", read):
            return super().load(data)

    @contextlib.contextmanager
    def recorded(self, log: LogWriter, memory: HeldBytes | None) -> Iterator[None]:
        """As a place does."""
        with placed(self.device), Staging(log, memory):
            yield


@contextlib.contextmanager
def placed(device: torch.device) -> Iterator[None]:
    """New tensors are made on `device` meanwhile."""
    with (
        device,
        _SameNumbers(device),
        patch.object(c10d, "batch_isend_irecv", _one_by_one),
        patch.object(dist, "batch_isend_irecv", _one_by_one),
    ):
        yield


class _SameNumbers(TorchFunctionMode):
    """Random tensors hold the numbers that they hold on the CPU."""

    def __init__(self, device: torch.device):
        super().__init__()
        self.device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        on_cpu = {"device": "cpu"} if func in _RANDOM and kwargs.get("device") is None else {}
        if not on_cpu or "out" in kwargs or any(isinstance(a, torch.Tensor) for a in args):
            return func(*args, **kwargs)
        drawn = func(*args, **{**kwargs, **on_cpu, "requires_grad": False})
        return drawn.to(self.device).requires_grad_(kwargs.get("requires_grad", False))


def _one_by_one(ops: list[dist.P2POp]) -> list[dist.Work]:
    """`batch_isend_irecv` as gloo does it: NCCL would take the tensors past `Staging`."""
    c10d._check_p2p_op_list(ops)
    works = []
    for op in ops:
        peer = {"group_dst" if op.op is dist.isend else "group_src": op.group_peer}
        works.append(op.op(op.tensor, group=op.group, tag=op.tag, **peer))
    return [work for work in works if work is not None]


class Staging(Recorder):
    """A recorder whose sends and receives go through main memory, where `stages` says so."""

    def __init__(self, log: LogWriter, memory: HeldBytes | None = None):
        super().__init__(log, memory)
        self._arriving: dict[int, tuple[Any, torch.Tensor, torch.Tensor]] = {}

    def stages(self, tensor: torch.Tensor) -> bool:
        """Whether gloo cannot reach this tensor."""
        return tensor.is_cuda

    def communicate(
        self, name: str, form: bytes, blocks: bool, make: Any, *args: Any, **how: bool
    ) -> Any:
        """As a recorder does, with tensors of main memory in the place of staged ones."""
        if name not in (*_SENDS, *_RECEIVES) or not self.stages(args[1][0]):
            return super().communicate(name, form, blocks, make, *args, **how)
        _, [tensor], *rest = args
        if name in _SENDS:
            host = tensor.to("cpu", copy=True)
        else:
            host = torch.empty_like(tensor, device="cpu")
        there = torch._C._dispatch_keys(host) & BELOW, [host], *rest
        out = super().communicate(name, form, blocks, make, *there, **how)
        if name in _RECEIVES:
            work = dist.Work.unbox(out)
            self._arriving[id(work)] = (work, tensor, host)
        return out

    def wait(self, work: Any, wait: Any, limited: bool = False) -> Any:
        """As a recorder does; what was received is then where it belongs."""
        out = super().wait(work, wait, limited)
        if arriving := self._arriving.pop(id(work), None):
            _, tensor, host = arriving
            tensor.detach().copy_(host)
        return out


def probe(rank: int, world_size: int, device_bytes: int) -> None:
    """Reduce on this rank's GPU.

    Raises:
        RuntimeError: it cannot be used, or too little of its memory is free.
    """
    here = process_group.device(rank)
    free, needed = torch.cuda.mem_get_info(here)[0], device_bytes + SPARE
    if free < needed:
        raise RuntimeError(f"{here} has {free >> 20} MiB free; a rank may need {needed >> 20}")
    total = torch.ones(8, device=here)
    dist.all_reduce(total)
    if total.tolist() != [world_size] * 8:
        raise RuntimeError(f"{here} adds wrong numbers")
