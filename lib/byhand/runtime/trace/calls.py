"""What one c10d operation is, in the ledger's words: from its dispatched arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from byhand.runtime.ledger import Call

Tensor = torch.Tensor

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
MONITORED = "a monitored barrier"


def describe(opname: str, args: tuple, reduce_op: str) -> Call:
    """The call that dispatching `opname`, one of READERS, with `args` makes."""
    boxed = next(a for a in args[1:] if isinstance(a, torch.ScriptObject))
    group = dist.ProcessGroup.unbox(boxed)
    ranks = tuple(dist.get_process_group_ranks(group))
    fields = READERS[opname](args, len(ranks))
    for key in ("root", "peer"):
        if key in fields:
            fields[key] = ranks[fields[key]]
    if fields["op"] in REDUCTIONS:
        fields["reduce_op"] = reduce_op
    return Call(group=ranks, group_name=group.group_name, **fields)


def _num_bytes(tensors: Sequence[Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _tensor(op: str, tensors: Sequence[Tensor], payload: int | None = None, **more: Any) -> dict:
    first = tensors[0]
    shape = tuple(first.shape) if len(tensors) == 1 else (sum(t.numel() for t in tensors),)
    return {
        "op": op,
        "shape": shape,
        "dtype": str(first.dtype).removeprefix("torch."),
        "payload_bytes": _num_bytes(tensors) if payload is None else payload,
        **more,
    }


def _all_to_all(
    output: Tensor, source: Tensor, receives: Sequence[int], sends: Sequence[int], n: int
) -> dict:
    sends = tuple(sends) or (source.shape[0] // n,) * n
    receives = tuple(receives) or (output.shape[0] // n,) * n
    return _tensor("all_to_all", [source], sends=sends, receives=receives) | {"shape": ()}


def _all_to_all_lists(outputs: list[Tensor], inputs: list[Tensor]) -> dict:
    sends = tuple(t.numel() for t in inputs)
    receives = tuple(t.numel() for t in outputs)
    return _tensor("all_to_all", inputs, sends=sends, receives=receives) | {"shape": ()}


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
    "alltoall_": lambda a, n: _all_to_all_lists(a[0], a[1]),
    "alltoall_base_": lambda a, n: _all_to_all(a[0], a[1], a[3], a[4], n),
    "barrier": lambda a, n: {"op": "barrier", "detail": "a barrier"},
    "monitored_barrier_": lambda a, n: {"op": "barrier", "detail": MONITORED},
    "send": lambda a, n: _tensor("send", a[0], peer=a[2], tag=a[3]),
    "recv_": lambda a, n: _tensor("recv", a[0], peer=a[2], tag=a[3]),
    "recv_any_source_": lambda a, n: _tensor("recv", a[0], tag=a[2]),
}
