"""Timing communication: what to warm up, when the clock starts, and whose clock counts.

A call is timed so: a few calls that do not count (the first ones connect, and touch new memory); a
barrier, so that no rank is counted for another's being late; the clock; the call; the clock again
once this rank's device is done. The time is the slowest rank's: from when the last rank called to
when the last rank had its result. It is taken often, and the median told, with its quartiles.

What is compared takes turns, so that whatever else the machine does hits all of it.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.words import counted

Group = dist.ProcessGroup | None
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # equal where the clock is


@dataclass(frozen=True)
class Timing:
    """`seconds` of each repetition, the slowest rank's: the same numbers on every rank."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """As many repetitions were faster as were slower."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Half of the repetitions lie between these."""
        if len(self.seconds) == 1:
            return self.seconds * 2
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high

    @property
    def doubt(self) -> float:
        """How uncertain the median is, as a share of itself: its standard error, at least 2 %."""
        low, high = self.quartiles
        return max(0.02, 0.93 * (high - low) / self.median / len(self.seconds) ** 0.5)

    def __str__(self) -> str:
        low, high = (1e3 * seconds for seconds in self.quartiles)
        return f"{1e3 * self.median:.3g} ms ({low:.3g} to {high:.3g})"


def take_turns(
    calls: Mapping[Any, Callable[[], Any]],
    repetitions: int = 15,
    warm_up: int = 3,
    group: Group = None,
) -> dict[Any, Timing]:
    """The times of several calls that take turns, by their names; every rank gets the same.

    calls: the same names in the same order on every rank.

    Raises:
        ValueError: nothing to time.
    """
    if not calls or repetitions < 1:
        given = f"{counted(len(calls), 'call')}, {counted(repetitions, 'repetition')}"
        raise ValueError(f"{given}: at least 1 of each")
    edges = []
    for repetition in range(-warm_up, repetitions):
        now = [_one(call, group) for call in calls.values()]
        edges += [now] if repetition >= 0 else []
    seconds = _slowest(torch.tensor(edges, dtype=torch.float64), group)
    return {name: Timing(tuple(seconds[:, i].tolist())) for i, name in enumerate(calls)}


def device(group: Group = None) -> str:
    """Where the tensors of a measurement live: on the GPU where NCCL can send them from there."""
    return "cuda" if "nccl" in dist.get_backend(group) else "cpu"


def _one(call: Callable[[], Any], group: Group) -> tuple[float, float]:
    """When this rank called, and when it was done."""
    dist.barrier(group=group)
    wait_for_device()
    start = time.monotonic()
    call()
    wait_for_device()
    return start, time.monotonic()


def wait_for_device() -> None:
    """Return when this rank's GPU has done all that was queued; at once where there is none."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _slowest(edges: Tensor, group: Group) -> Tensor:
    """Every rank's (start, end) by repetition and call -> seconds, by repetition and call.

    Ranks on different machines have clocks that disagree: there, the longest time that any rank
    measured, which counts the barrier's unevenness too.
    """
    everyone = [torch.empty_like(edges) for _ in range(dist.get_world_size(group))]
    gathered = [theirs.to(device(group)) for theirs in everyone]
    dist.all_gather(gathered, edges.to(device(group)), group=group)
    starts, ends = torch.stack(gathered).cpu().unbind(dim=-1)
    if _one_clock(group):
        return ends.amax(dim=0) - starts.amax(dim=0)
    return (ends - starts).amax(dim=0)


def _one_clock(group: Group) -> bool:
    machine = None
    with contextlib.suppress(OSError):
        machine = BOOT_ID.read_text()
    machines: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(machines, machine, group=group)
    return machine is not None and len(set(machines)) == 1
