"""What one c10d operation is, in the ledger's words: from its dispatched arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from byhand.runtime.trace.log import MONITORED

Tensor = torch.Tensor


@dataclass
class Described:
    """The log's fields of one call. `blocks`: the rank stands still inside the call itself."""

    fields: dict[str, Any]
    blocks: bool = False
    functional: bool = False


def describe(opname: str, args: tuple, kwargs: dict, reduce_op: str | None) -> Described | None:
    """The call that dispatching `opname` with `args` makes; None when it makes none."""
    reader = _READERS.get(opname)
    if reader is not None:
        group = dist.ProcessGroup.unbox(_group_argument(args))
        fields = _with_group(group, reader(args, group.size()))
        if fields["op"] in ("all_reduce", "reduce", "reduce_scatter"):
            fields["reduce_op"] = reduce_op
        return Described(fields, blocks=opname == "monitored_barrier_")
    reader = _FUNCTIONAL_READERS.get(opname)
    if reader is None:
        return None
    group = c10d._resolve_process_group(args[-1])
    return Described(_with_group(group, reader(args, group.size())), functional=True)


def _group_argument(args: tuple) -> Any:
    return next(a for a in args[1:] if isinstance(a, torch.ScriptObject))


def _with_group(group: dist.ProcessGroup, fields: dict[str, Any]) -> dict[str, Any]:
    """Name the group, and turn the group ranks in `fields` into global ones."""
    ranks = dist.get_process_group_ranks(group)
    for key in ("root", "peer"):
        if fields.get(key) is not None:
            fields[key] = ranks[fields[key]]
    return {**fields, "group_name": group.group_name, "group": ranks}


def _num_bytes(tensors: list[Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _tensor(op: str, tensors: list[Tensor], payload: int | None = None, **more: Any) -> dict:
    first = tensors[0]
    shape = list(first.shape) if len(tensors) == 1 else [sum(t.numel() for t in tensors)]
    num_bytes = _num_bytes(tensors) if payload is None else payload
    return {
        "op": op,
        "shape": shape,
        "dtype": str(first.dtype).removeprefix("torch."),
        "payload": num_bytes,
        **more,
    }


def _all_to_all(
    output: Tensor, source: Tensor, receives: list[int], sends: list[int], n: int
) -> dict:
    sends = list(sends) or [source.shape[0] // n] * n
    receives = list(receives) or [output.shape[0] // n] * n
    fields = _tensor("all_to_all", [source], sends=sends, receives=receives)
    return {**fields, "shape": None}


def _all_to_all_lists(outputs: list[Tensor], inputs: list[Tensor]) -> dict:
    fields = _tensor(
        "all_to_all",
        inputs,
        sends=[t.numel() for t in inputs],
        receives=[t.numel() for t in outputs],
    )
    return {**fields, "shape": None}


_READERS: dict[str, Any] = {
    "allreduce_": lambda a, n: _tensor("all_reduce", a[0]),
    "allreduce_coalesced_": lambda a, n: _tensor("all_reduce", a[0]),
    "broadcast_": lambda a, n: _tensor("broadcast", a[0], root=a[2]),
    "reduce_": lambda a, n: _tensor("reduce", a[0], root=a[3]),
    "allgather_": lambda a, n: _tensor("all_gather", a[1], _num_bytes(a[0][0])),
    "_allgather_base_": lambda a, n: _tensor("all_gather", [a[1]], _num_bytes([a[0]])),
    "allgather_coalesced_": lambda a, n: _tensor("all_gather", a[1], n * _num_bytes(a[1])),
    "allgather_into_tensor_coalesced_": lambda a, n: _tensor("all_gather", a[1], _num_bytes(a[0])),
    "reduce_scatter_": lambda a, n: _tensor(
        "reduce_scatter", a[0], _num_bytes(a[1][0]), listed=True
    ),
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

_FUNCTIONAL_READERS: dict[str, Any] = {
    "all_reduce": lambda a, n: _tensor("all_reduce", [a[0]], reduce_op=a[1]),
    "all_reduce_": lambda a, n: _tensor("all_reduce", [a[0]], reduce_op=a[1]),
    "all_reduce_coalesced": lambda a, n: _tensor("all_reduce", a[0], reduce_op=a[1]),
    "all_gather_into_tensor": lambda a, n: _tensor("all_gather", [a[0]], n * _num_bytes([a[0]])),
    "reduce_scatter_tensor": lambda a, n: _tensor("reduce_scatter", [a[0]], reduce_op=a[1]),
    "all_to_all_single": lambda a, n: _all_to_all(a[0], a[0], a[1], a[2], n),
    "broadcast": lambda a, n: _tensor("broadcast", [a[0]], root=a[1]),
    "broadcast_": lambda a, n: _tensor("broadcast", [a[0]], root=a[1]),
}
