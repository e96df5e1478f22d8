"""Carries out all-reduce plans: round by round, or pipelined. The only part that sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.all_reduce.plans import Plan
from byhand.all_reduce.programs import Program, Receive, Send, Spans

Group = dist.ProcessGroup | None
AHEAD = 8  # receives that are posted before they are due: gloo sends only to a posted receive
AHEAD_BYTES = 16 << 20  # of them wait in memory of their own, but two do in any case

_FOR_ALL = {"SUM": torch.add, "PRODUCT": torch.mul}
_FOR_ORDERED = {"MIN": torch.minimum, "MAX": torch.maximum}
_FOR_WHOLE = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}


def combination(op: dist.ReduceOp, dtype: torch.dtype) -> Callable[..., Tensor]:
    """The torch function that reduces two tensors of `dtype`, with `out`. AVG adds.

    Raises:
        ValueError: there is none.
    """
    name = str(op).rpartition(".")[2]
    known = _FOR_ALL | _FOR_ORDERED | _FOR_WHOLE | {"AVG": torch.add}
    if name not in known:
        raise ValueError(f"no reduction {name!r}: there are {', '.join(sorted(known))}")
    fractional = dtype.is_floating_point or dtype.is_complex
    if name == "AVG" and not fractional:
        raise ValueError(f"AVG of {dtype} is no {dtype}: use SUM, and divide")
    if name in _FOR_WHOLE and fractional:
        raise ValueError(f"{name} is for whole numbers and bool, not for {dtype}")
    if name in _FOR_ORDERED and dtype.is_complex:
        raise ValueError(f"{name} needs an order, which {dtype} has not")
    if dtype.itemsize == 1 and dtype.is_floating_point:
        raise ValueError(f"{dtype} cannot be added: convert it to float16 or wider first")
    return known[name]


def run_rounds(
    plan: Plan, rank: int, spans: Spans, result: Tensor, combine: Callable, group: Group
) -> None:
    """The plan on flat `result`, in place: each round's messages, then its additions."""
    for transfers in plan.rounds:
        calls, arrived = [], []
        for transfer in transfers:
            start, stop = spans[0][transfer.start][0], spans[0][transfer.stop - 1][1]
            own = result[start:stop]
            if transfer.sender == rank and start < stop:
                calls.append(_message(dist.isend, own, transfer.receiver, group))
            elif transfer.receiver == rank and start < stop:
                incoming = torch.empty_like(own) if transfer.reduces else own
                calls.append(_message(dist.irecv, incoming, transfer.sender, group))
                if transfer.reduces:
                    arrived.append((transfer.sender, incoming, own))
        for work in dist.batch_isend_irecv(calls) if calls else ():
            work.wait()
        for sender, incoming, own in arrived:
            combine(*_in_order(sender, rank, incoming, own), out=own)


def _message(call: Callable, tensor: Tensor, peer: int, group: Group) -> dist.P2POp:
    return dist.P2POp(call, tensor, group=group, group_peer=peer)


def _in_order(sender: int, rank: int, incoming: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The lower rank's first: two ranks that reduce each other's tensors get the same bits."""
    return (incoming, own) if sender < rank else (own, incoming)


@dataclass
class Pending:
    """A reduction under way; `wait()` returns its result."""

    finish: Callable[[], Tensor]
    _result: Tensor | None = None

    def wait(self) -> Tensor:
        """Take part until the result is complete, and return it; a second time, at once."""
        if self._result is None:
            self._result = self.finish()
        return self._result

    def is_completed(self) -> bool:
        """Whether `wait` has returned: nothing completes before it is waited for."""
        return self._result is not None


class Pipeline:
    """A rank's program under way, from flat tensor `source` to flat tensor `result`.

    `tag` sets its messages apart from those of other programs in the same group.
    """

    def __init__(
        self,
        steps: Program,
        source: Tensor,
        result: Tensor,
        combine: Callable | None,
        group: Group,
        tag: int,
    ):
        """Post the first receives, and send what depends on none."""
        self.steps, self.source, self.result = steps, source, result
        self.combine, self.group, self.tag = combine, group, tag
        self.rank = dist.get_rank(group)
        self.arriving: dict[int, tuple[dist.Work, Tensor]] = {}
        self.leaving: dict[tuple[int, int], dist.Work] = {}  # by peer and tag
        room = AHEAD_BYTES // max(1, steps.widest * source.itemsize)
        self.ahead = min(AHEAD, max(2, room), len(steps.receives))
        self.slots = source.new_empty(self.ahead, steps.widest)
        for number in range(self.ahead):
            self._post(number)
        self._send(steps.first)

    def run(self) -> None:
        """Take every receive in turn; return when all that was sent has left."""
        for number, step in enumerate(self.steps.receives):
            work, arrived = self.arriving.pop(number)
            work.wait()
            if step.reduces:
                self._reduce(step, arrived)
            self._send(step.then)
            self._post(number + self.ahead)
        for work in self.leaving.values():
            work.wait()

    def _reduce(self, step: Receive, arrived: Tensor) -> None:
        for send in step.after:
            if send in self.leaving:
                self.leaving.pop(send).wait()
        span = slice(step.start, step.stop)
        own = self.source[span] if step.of_input else self.result[span]
        self.combine(*_in_order(step.peer, self.rank, arrived, own), out=self.result[span])

    def _send(self, sends: tuple[Send, ...]) -> None:
        for send in sends:
            whole = self.source if send.of_input else self.result
            span, tag = whole[send.start : send.stop], self.tag + send.tag
            self.leaving[send.peer, send.tag] = dist.isend(
                span, group=self.group, tag=tag, group_dst=send.peer
            )

    def _post(self, number: int) -> None:
        """Receive number `number`, if there is one, to its place or, to be added, to a slot."""
        if number >= len(self.steps.receives):
            return
        step = self.steps.receives[number]
        place = self.result[step.start : step.stop]
        if step.reduces:
            place = self.slots[number % self.ahead][: step.stop - step.start]
        tag = self.tag + step.tag
        work = dist.irecv(place, group=self.group, tag=tag, group_src=step.peer)
        self.arriving[number] = work, place
