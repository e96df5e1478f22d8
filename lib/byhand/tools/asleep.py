"""What labs watch on two cores: layers that sleep, and links as slow as one asks for.

A rank that sleeps takes no core, so any number of ranks computes at full speed on two: what is
measured is the messages and their order, not the ranks' fight for the processor.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from byhand.model.layer import REPLICATED, Layer
from byhand.runtime import Event, Run, VirtualNetwork, why_no_network

LINK = 25e6  # bytes a second
LAYER_BYTES = 500_000  # of the weight of a layer that sleeps, where it has one

_last = [0.0, 0.0]  # when this process's last sleep ended, and by how much it was too long


def sleep(seconds: float) -> None:
    """Sleep, and make good what a sleep just before took too long: in a row, they add up.

    One of no seconds is none: what a busy machine makes of it shortens no other.
    """
    if not seconds:
        return
    ended, late = _last
    begin = time.monotonic()
    due = begin + seconds - late * (begin - ended < 0.005)
    time.sleep(max(0.0, due - begin))
    _last[:] = time.monotonic(), max(0.0, time.monotonic() - due)


def slow_link(world_size: int = 2) -> VirtualNetwork | None:
    """Hosts of one rank each, joined by links of LINK; None where no network can be laid."""
    return None if why_no_network() else VirtualNetwork(world_size, 1, LINK)


class Stretch(NamedTuple):
    """A part of a rank's time on the ledger's clock, and the calls that began in it."""

    begin: float
    end: float
    calls: list[Event]

    def sent_bytes(self) -> dict[str, float]:
        """What these calls sent, by op."""
        sent: dict[str, float] = {}
        for call in self.calls:
            if call.op not in ("barrier", "recv"):
                sent[call.op] = sent.get(call.op, 0) + call.sent_bytes
        return sent


def stretches(run: Run, rank: int = 0) -> list[Stretch]:
    """The rank's time, cut where its barriers end; each barrier is the last call before the cut."""
    calls, (begin, end) = run.ledger.select(rank=rank), run.spans[rank]
    cuts = [begin, *(call.end for call in calls if call.op == "barrier"), end]
    pairs = pairwise(cuts)
    return [Stretch(a, b, [c for c in calls if a <= c.start < b]) for a, b in pairs]


def sent_each_way(run: Run) -> dict[str, dict[str, float]]:
    """What rank 0 sent, by op, forward and backward: one barrier stands between the two."""
    forward, backward = stretches(run)
    return {"forward": forward.sent_bytes(), "backward": backward.sent_bytes()}


def sum_of(sent: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """Forward's and backward's bytes together, by op."""
    return sum(map(Counter, sent.values()), Counter())


def from_zero(parts: Iterable[Stretch]) -> tuple[list[Event], list[tuple[float, float]]]:
    """Their calls and spans, which a timeline draws; the first begins at 0."""
    parts = list(parts)
    zero = min(part.begin for part in parts)
    calls = [replace(call) for part in parts for call in part.calls]
    for call in calls:
        call.count_from(zero)
    return calls, [(part.begin - zero, part.end - zero) for part in parts]


@dataclass(eq=False)  # two layers are never one, however alike
class Sleep(Layer):
    """A layer that computes nothing, in the given seconds, with a weight of that many bytes."""

    holds = {"weight": REPLICATED}

    forward_seconds: float
    backward_input_seconds: float
    backward_weight_seconds: float = 0.0
    num_bytes: int = 0

    def __post_init__(self) -> None:
        self.weight, self.grad_weight = torch.zeros(2, self.num_bytes // 4)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """x -> x."""
        sleep(self.forward_seconds)
        return x, None

    def backward_input(self, grad_y: Tensor, saved: None) -> tuple[Tensor, None]:
        """grad_y -> grad_y."""
        sleep(self.backward_input_seconds)
        return grad_y, None

    def backward_weight(self, kept: None) -> None:
        """Nothing."""
        sleep(self.backward_weight_seconds)
