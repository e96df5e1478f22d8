"""On a rank: every request ends in a wait; until then nothing arrives, and nothing sent changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d
from torch.utils._python_dispatch import _disable_current_modes

from byhand.check.errors import CheckError
from byhand.runtime.pickling import as_bytes
from byhand.runtime.trace.recorder import calling_frame

_CALLS = {  # by the method of a group that makes it, what a reader knows the request as
    "send": "isend",
    "recv": "irecv",
    "recv_anysource": "irecv",
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "allgather": "all_gather",
    "_allgather_base": "all_gather_into_tensor",
    "all_gather_single": "all_gather_into_tensor",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather_into_tensor",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
    "all_to_all_single": "all_to_all_single",
    "barrier": "barrier",
}
_PREPOSITIONS = {"send": "to", "recv": "from"}
_ENDS = ("wait", "is_completed", "get_future", "synchronize")


class UnwaitedError(CheckError):
    """A request was made and nobody waited for it."""


class ChangedError(CheckError):
    """A tensor was written, or is to be, while it is being sent."""


@dataclass
class _Request:
    """A request under way: `said`, and where it was made; of a send, what it sends and sent.

    `arriving`: pairs of a tensor that is to be written, and what stands for it until the wait.
    """

    work: dist.Work
    said: str
    place: tuple[str, int, str]
    tensors: list[Tensor]
    before: list[Tensor]
    peer: int | None
    arriving: list[tuple[Tensor, Tensor]]


@contextmanager
def finished_requests(on_send: Callable[[int], None] | None = None) -> Iterator[None]:
    """Every request ends in a wait(), and a tensor that is sent is the same until then.

    A request is what isend and irecv return, and a collective with async_op=True. It has ended
    after wait(), or when its future was taken, whose holder then waits; a collective's also when
    is_completed() said True, which on gloo that of isend and irecv never does before wait(). A
    program that breaks this may send what was written later, use what has not arrived, and be
    right by chance: so the result is put into the caller's tensor as the request ends, and no
    earlier. on_send(peer) is called when a send to that global rank begins.

    Raises:
        UnwaitedError: a request was never waited for; it points to the line that made it.
        ChangedError: a tensor being sent changed before the wait was over, or a message that is
            still to come has the same memory as another, sent or still to come.
    """
    under_way: dict[int, _Request] = {}

    def make(method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """In the place of a group's method: it also notes the request that it makes."""

        def made(group: dist.ProcessGroup, *args: Any, **kwargs: Any) -> Any:
            """Begin the transfer with stand-ins for what arrives, and note its request."""
            coalesced = group in c10d._world.pg_coalesce_state  # one work stands for them all
            if args and method in ("send", "recv", "recv_anysource") and not coalesced:
                _keep_apart(method, args[0], under_way.values())
            arriving: list[tuple[Tensor, Tensor]] = []
            if args and method != "send" and not coalesced:
                args = (_stand_ins(args[0], arriving), *args[1:])
            with _disable_current_modes():  # or the stand-ins would be seen, and counted
                work = original(group, *args, **kwargs)
            if isinstance(work, dist.Work) and not coalesced:
                request = _request(method, work, group, args, arriving)
                under_way[id(work)] = request
                if on_send and method == "send" and request.peer is not None:
                    on_send(request.peer)
            return work

        return made

    def end(method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """In the place of a work's method: it also ends the request, and looks what changed."""

        def ended(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
            """End the request, unless it is only asked whether it has ended and has not."""
            out = original(work, *args, **kwargs)
            if (method != "is_completed" or out) and id(work) in under_way:
                request = under_way.pop(id(work))
                _compare(request)
                if method == "get_future":
                    return out.then(partial(_value_of, request))
                _arrive(request)
            return out

        return ended

    with _patched(dist.ProcessGroup, _CALLS, make), _patched(dist.Work, _ENDS, end):
        yield
    if under_way:
        _refuse(list(under_way.values()))


@contextmanager
def _patched(owner: type, names: Any, wrapper: Callable[..., Any]) -> Iterator[None]:
    originals = {name: getattr(owner, name) for name in names if hasattr(owner, name)}
    for name, original in originals.items():
        setattr(owner, name, wrapper(name, original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


def _stand_ins(results: Any, arriving: list[tuple[Tensor, Tensor]]) -> Any:
    """What a call writes instead of `results`, in memory that no count sees; noted in arriving."""
    if isinstance(results, list | tuple):
        return [_stand_ins(one, arriving) for one in results]
    plain = isinstance(results, Tensor) and results.layout is torch.strided
    if not plain or not results.is_contiguous():  # others are torch's to refuse
        return results
    with _disable_current_modes():
        arriving.append((results, results.data.clone()))
    return arriving[-1][1]


def _keep_apart(method: str, tensors: list[Tensor], under_way: Iterable[_Request]) -> None:
    """Messages under way at a time have no memory in common, but that of two sends."""
    call = _CALLS[method]
    for request in under_way:
        written = [tensor for tensor, _ in request.arriving]
        if _meet(tensors, written):
            told = f"{call} was given a tensor into which {request.said} is still to write"
        elif method != "send" and _meet(tensors, request.tensors):
            told = f"{call} was given a tensor that is still on its way to rank {request.peer}"
        else:
            continue
        raise ChangedError(f"{told}: call wait() on that first, or take another tensor.")


def _meet(some: list[Tensor], others: list[Tensor]) -> bool:
    return any(_overlap(one, other) for one in some for other in others)


def _overlap(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have memory in common; of one with gaps nobody can tell at a glance."""
    if not (one.is_contiguous() and other.is_contiguous()):
        return False
    first, second = sorted([(one.data_ptr(), one.nbytes), (other.data_ptr(), other.nbytes)])
    return first[0] + first[1] > second[0] and min(first[1], second[1]) > 0


def _arrive(request: _Request) -> None:
    """Put what came where it belongs, as the transport itself would: past autograd."""
    with _disable_current_modes():
        for tensor, came in request.arriving:
            tensor.data.copy_(came)


def _value_of(request: _Request, future: Any) -> Any:
    """What a request's future has, once what came is where it belongs."""
    _arrive(request)
    return future.value()


def _request(
    method: str,
    work: dist.Work,
    group: dist.ProcessGroup,
    args: tuple,
    arriving: list[tuple[Tensor, Tensor]],
) -> _Request:
    """A request that has just been made; of a send with a copy that no count of memory sees."""
    peer = dist.get_global_rank(group, args[1]) if method in _PREPOSITIONS else None
    said = _CALLS[method]
    said += f" {_PREPOSITIONS[method]} rank {peer}" if method in _PREPOSITIONS else ""
    tensors = list(args[0]) if method == "send" else []
    with _disable_current_modes():
        before = [tensor.detach().clone() for tensor in tensors]
    frame = calling_frame()
    place = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
    return _Request(work, said, place, tensors, before, peer, arriving)


def _compare(request: _Request) -> None:
    with _disable_current_modes():
        pairs = list(zip(request.tensors, request.before, strict=True))
        # as bytes: they can be compared in every dtype, and where there is a nan
        same = all(torch.equal(as_bytes(now), as_bytes(was)) for now, was in pairs)
    if not same:
        to = f"a tensor on its way to rank {request.peer}"
        raise ChangedError(f"{to} was changed before wait() ended.")


def _refuse(requests: list[_Request]) -> None:
    """Raise for the first of them, as if the line that made it did."""
    first, *others = requests
    more = f", one of {len(requests)} such requests" if others else ""
    message = f"what {first.said} returned was never waited for{more}: call wait() on it."
    filename, line, name = first.place
    code = compile("\n" * (line - 1) + "raise error", filename, "exec").replace(co_name=name)
    exec(code, {"error": UnwaitedError(message)})
