"""What one c10d operation is, in the ledger's words: from its dispatched arguments."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from byhand.runtime.ledger import Call
from byhand.runtime.trace.log import packed_call

Tensor = tuple[torch.Size, torch.dtype]  # all that is told of one

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
MONITORED = "a monitored barrier"
_PLAIN = {int, bool, str, type(None)}
_BOXED = torch.ScriptObject


def packed(op: Any, args: tuple, reduce_op: Any, place: tuple[str, int]) -> bytes:
    """The fields of the call that `op`, whose name is one of READERS, makes with `args` at `place`.

    `reduce_op`: torch's, or its name. Equal calls give the same object: log.py writes it once.
    """
    group = dist.ProcessGroup.unbox(args[position(op, "process_group")])
    ranks = tuple(dist.get_process_group_ranks(group))
    told = tuple(map(_told, args))
    return _packed(op._opname, told, ranks, group.group_name, reduce_op, place)


@functools.cache
def position(op: Any, name: str) -> int:
    """Where `op` takes its argument of this name; beyond them all, if it has none."""
    names = [argument.name for argument in op._schema.arguments]
    return names.index(name) if name in names else len(names)


def _told(value: Any) -> Any:
    """What a record tells of an argument: often asked, so by its type alone."""
    kind = type(value)
    if kind is list:
        return tuple(map(_told, value))
    if kind in _PLAIN:
        return value
    return None if kind is _BOXED else (value.shape, value.dtype)


@functools.lru_cache(1024)  # most programs make the same calls again and again
def _packed(
    opname: str,
    args: tuple,
    ranks: tuple[int, ...],
    group_name: str,
    reduce_op: Any,
    place: tuple[str, int],
) -> bytes:
    fields = READERS[opname](args, len(ranks))
    for key in ("root", "peer"):
        if key in fields:
            fields[key] = ranks[fields[key]]
    if fields["op"] in REDUCTIONS:
        fields["reduce_op"] = _name(reduce_op)
    file, line = place
    return packed_call(Call(group=ranks, group_name=group_name, file=file, line=line, **fields))


def _name(reduce_op: Any) -> str:
    """`sum` for "sum", ReduceOp.SUM and ReduceOp(ReduceOp.SUM)."""
    return str(getattr(reduce_op, "op", reduce_op)).rpartition(".")[2].lower()


def _num_bytes(tensors: Sequence[Tensor]) -> int:
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in tensors)


def _tensor(op: str, tensors: Sequence[Tensor], payload: int | None = None, **more: Any) -> dict:
    shape, dtype = tensors[0]
    if len(tensors) > 1:
        shape = (sum(math.prod(shape) for shape, _ in tensors),)
    return {
        "op": op,
        "shape": shape,
        "dtype": str(dtype).removeprefix("torch."),
        "payload_bytes": _num_bytes(tensors) if payload is None else payload,
        **more,
    }


def _all_to_all(
    output: Tensor, source: Tensor, receives: Sequence[int], sends: Sequence[int], n: int
) -> dict:
    sends = sends or (source[0][0] // n,) * n
    receives = receives or (output[0][0] // n,) * n
    return _tensor("all_to_all", [source], sends=sends, receives=receives) | {"shape": ()}


def _all_to_all_lists(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> dict:
    sends, receives = ([math.prod(shape) for shape, _ in side] for side in (inputs, outputs))
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
