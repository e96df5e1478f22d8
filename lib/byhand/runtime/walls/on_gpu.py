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
import pickle
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.overrides import TorchFunctionMode

from byhand.runtime.process import world as process_group
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.trace.memory import HeldBytes
from byhand.runtime.trace.recorder import Recorder

_SENDS, _RECEIVES = ("send",), ("recv_", "recv_any_source_")
_RANDOM = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}
SPARE = 1 << 28  # bytes that CUDA itself takes of a GPU, for each rank


def taken(rank: int, limits: dict[str, int]) -> torch.device | None:
    """This rank's GPU, with a cap on what torch takes of it; None without `device_bytes`."""
    if "device_bytes" not in limits:
        return None
    device = process_group.device(rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        share = limits["device_bytes"] / torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, share), device)
        torch.backends.cudnn.allow_tf32 = False  # convolutions are as exact as on the CPU
    return device


@contextlib.contextmanager
def placed(device: torch.device | None) -> Iterator[None]:
    """New tensors are made on `device` meanwhile; None changes nothing."""
    if device is None:
        yield
        return
    batched = c10d.batch_isend_irecv
    with device, _SameNumbers(device):
        c10d.batch_isend_irecv = dist.batch_isend_irecv = _one_by_one
        try:
            yield
        finally:
            c10d.batch_isend_irecv = dist.batch_isend_irecv = batched


def loads(data: bytes, device: torch.device | None) -> Any:
    """What `data` pickles, with every tensor in it on `device`, wherever in it that is."""
    return pickle.loads(data) if device is None else _Unpickler(data, device).load()


class _Unpickler(pickle.Unpickler):
    """Reads the storage of tensors onto a device; views, strides and gradients stay as they are."""

    def __init__(self, data: bytes, device: torch.device):
        super().__init__(io.BytesIO(data))
        self.device = device

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return self._storage
        return super().find_class(module, name)

    def _storage(self, data: bytes) -> Any:
        return torch.load(io.BytesIO(data), map_location=self.device, weights_only=False)


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

    def communicate(self, op: Any, keyset: Any, args: tuple) -> Any:
        """As a recorder does, with tensors of main memory in the place of staged ones."""
        name = op._opname
        if name not in (*_SENDS, *_RECEIVES) or not self.stages(args[0][0]):
            return super().communicate(op, keyset, args)
        [tensor] = args[0]
        if name in _SENDS:
            host = tensor.to("cpu", copy=True)
        else:
            host = torch.empty_like(tensor, device="cpu")
        out = super().communicate(op, torch._C._dispatch_keys(host), ([host], *args[1:]))
        if name in _RECEIVES:
            work = dist.Work.unbox(out)
            self._arriving[id(work)] = (work, tensor, host)
        return out

    def wait(self, work: Any, wait: Any) -> Any:
        """As a recorder does; what was received is then where it belongs."""
        out = super().wait(work, wait)
        _, tensor, host = self._arriving.pop(id(work), (None, None, None))
        if host is not None:
            tensor.detach().copy_(host)
        return out


def probe(rank: int, world_size: int, gpus: int, device_bytes: int) -> None:
    """Compute, reduce and send on this rank's GPU, as submissions do.

    Raises:
        RuntimeError: it cannot be used, or too little of its memory is free.
    """
    if (found := torch.cuda.device_count()) < gpus:
        raise RuntimeError(f"the sandbox shows {found} of {gpus} GPUs")
    here = process_group.device(rank)
    free, needed = torch.cuda.mem_get_info(here)[0], device_bytes + SPARE
    if free < needed:
        raise RuntimeError(f"{here} has {free >> 20} MiB free; a rank may need {needed >> 20}")
    total, got = torch.ones(8, device=here), torch.zeros(8, device=here)
    if world_size > 1:
        sending = dist.isend(total, (rank + 1) % world_size)
        dist.recv(got, (rank - 1) % world_size)
        sending.wait()
    dist.all_reduce(total)
    if total.tolist() != [world_size] * 8 or got.sum().item() != (8 if world_size > 1 else 0):
        raise RuntimeError(f"{here} adds or sends wrong numbers")
