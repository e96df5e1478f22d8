"""What each c10d operation is in the ledger's words: by name, from its arguments. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

Tensor = tuple[tuple[int, ...], torch.dtype]  # all that is told of one: shape and dtype
MONITORED = "a monitored barrier"


def _num_bytes(tensors: Sequence[Tensor]) -> int:
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in tensors)


def _tensor(op: str, tensors: Sequence[Tensor], payload: int | None = None, **more: Any) -> dict:
    shape, dtype = tensors[0] if tensors else ((), "")  # of none, which torch refuses
    if len(tensors) > 1:
        shape = (sum(math.prod(shape) for shape, _ in tensors),)
    payload = _num_bytes(tensors) if payload is None else payload
    fields = {"op": op, "shape": shape, "dtype": str(dtype).removeprefix("torch.")}
    return {**fields, "payload_bytes": payload, **more}


def _all_to_all(sent: Sequence[Tensor], sends: Sequence[int], receives: Sequence[int]) -> dict:
    return _tensor("all_to_all", sent, sends=sends, receives=receives) | {"shape": ()}


def _numels(tensors: Sequence[Tensor]) -> list[int]:
    return [math.prod(shape) for shape, _ in tensors]


def _elements(tensor: Tensor, splits: Sequence[int], n: int) -> Sequence[int]:
    """To or from each of n ranks: those of so many rows, or evenly."""
    shape, _ = tensor
    if not splits:
        return (math.prod(shape) // n,) * n
    return tuple(rows * math.prod(shape[1:]) for rows in splits)


READERS: dict[str, Any] = {
    "allreduce_": lambda a, n: _tensor("all_reduce", a[0]),
    "allreduce_coalesced_": lambda a, n: _tensor("all_reduce", a[0]),
    "broadcast_": lambda a, n: _tensor("broadcast", a[0], root=a[2]),
    "reduce_": lambda a, n: _tensor("reduce", a[0], root=a[3]),
    "allgather_": lambda a, n: _tensor("all_gather", a[1], _num_bytes(a[0][0])),
    "_allgather_base_": lambda a, n: _tensor("all_gather", [a[1]], _num_bytes([a[0]])),
    "allgather_coalesced_": lambda a, n: _tensor("all_gather", a[1], n * _num_bytes(a[1])),
    "allgather_into_tensor_coalesced_": lambda a, n: _tensor("all_gather", a[1], _num_bytes(a[0])),
    "reduce_scatter_": lambda a, n: _tensor("reduce_scatter", a[0], _num_bytes(a[1][0])),
    "_reduce_scatter_base_": lambda a, n: _tensor("reduce_scatter", [a[1]]),
    "reduce_scatter_tensor_coalesced_": lambda a, n: _tensor("reduce_scatter", a[1]),
    "gather_": lambda a, n: _tensor("gather", a[1], n * _num_bytes(a[1]), root=a[3]),
    "scatter_": lambda a, n: _tensor("scatter", a[0], n * _num_bytes(a[0]), root=a[3]),
    "alltoall_": lambda a, n: _all_to_all(a[1], _numels(a[1]), _numels(a[0])),
    "alltoall_base_": lambda a, n: _all_to_all(
        [a[1]], _elements(a[1], a[4], n), _elements(a[0], a[3], n)
    ),
    "barrier": lambda a, n: {"op": "barrier", "detail": "a barrier"},
    "monitored_barrier_": lambda a, n: {"op": "barrier", "detail": MONITORED},
    "send": lambda a, n: _tensor("send", a[0], peer=a[2], tag=a[3]),
    "recv_": lambda a, n: _tensor("recv", a[0], peer=a[2], tag=a[3]),
    "recv_any_source_": lambda a, n: _tensor("recv", a[0], tag=a[2]),
}
