"""What a driver asks, on its rank, while a student's function runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name

import torch
import torch.distributed as dist

from byhand.check.parts import CheckError
from byhand.words import ranks_text


@contextmanager
def finished_sends(on_send: Callable[[int], None] | None = None) -> Iterator[None]:
    """Every send ends in a wait(), and its tensor is the same until then.

    A program that breaks this may send what was written later, or end before a message has left,
    and be right by chance. on_send(peer) is called when a send to that global rank begins.

    Raises:
        CheckError: a send was never waited for, or its tensor changed before the wait was over.
    """
    send, wait = dist.ProcessGroup.send, dist.Work.wait
    open_sends: dict[int, tuple] = {}

    def noting(group, tensors, peer, *rest):
        before = [tensor.clone() for tensor in tensors]
        work = send(group, tensors, peer, *rest)
        to = dist.get_global_rank(group, peer)
        open_sends[id(work)] = work, tensors, before, to
        if on_send:
            on_send(to)
        return work

    def comparing(work, *rest):
        out = wait(work, *rest)
        _, tensors, before, peer = open_sends.pop(id(work), (work, [], [], None))
        pairs = zip(tensors, before, strict=True)
        if not all(torch.equal(now.nan_to_num(), was.nan_to_num()) for now, was in pairs):
            raise CheckError(f"a tensor on its way to rank {peer} was changed before wait() ended.")
        return out

    dist.ProcessGroup.send, dist.Work.wait = noting, comparing
    try:
        yield
    finally:
        dist.ProcessGroup.send, dist.Work.wait = send, wait
    if open_sends:
        peers = sorted({peer for *_, peer in open_sends.values()})
        raise CheckError(
            f"a send to {ranks_text(peers)} was never waited for: call wait() on all that isend"
            " returns."
        )


@contextmanager
def locked(*names: str) -> Iterator[None]:
    """These functions of the library, such as "byhand.collectives.broadcast", refuse to work."""
    functions = [resolve_name(name) for name in names]
    codes = [function.__code__ for function in functions]
    for function in functions:
        function.__code__ = _refused.__code__
    try:
        yield
    finally:
        for function, code in zip(functions, codes, strict=True):
            function.__code__ = code


def _refused(*_, **__):
    raise AssertionError("the library's function is locked here: this task asks for your own")
