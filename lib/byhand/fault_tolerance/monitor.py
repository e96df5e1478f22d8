"""A run's numbers for TensorBoard: one page an operator looks at.

    with Monitor("runs/first") as monitor:
        for step, numbers in enumerate(steps):     # what a rank returned: loss, gradient norm, ...
            monitor.step(step, **numbers)
        monitor.communication(run.ledger.events)   # bytes, bandwidth and waiting, by rank and step
        monitor.memory(run.peak_bytes)

    tensorboard --logdir runs

TensorBoard's own writer does the work; here is only what is worth looking at. Names before a "/"
are a group of charts, and what follows it is a curve in one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from byhand.fault_tolerance.waiting import waits


class Monitor:
    """Writes scalars into a folder. A context manager, which ends with all of it on the disk."""

    def __init__(self, folder: str | Path):
        """Raises:
        ImportError: tensorboard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter  # takes two seconds
        except ImportError as error:
            raise ImportError("this needs tensorboard: pip install tensorboard") from error
        self.writer = SummaryWriter(str(folder))

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

    def step(self, step: int, **numbers: float) -> None:
        """Numbers of one step, by name; an underscore stands for a space."""
        for name, number in numbers.items():
            self.writer.add_scalar(name.replace("_", " "), number, step)

    def communication(self, events: Iterable[Any], ends: str = "barrier") -> None:
        """Of a ledger's events, by step and rank: bytes sent, bytes a second, seconds waited.

        ends: the call that ends a rank's step, such as its one "barrier" or its one "broadcast".
        Bytes a second are those of all calls over the time in which one was under way.
        """
        for step, calls in enumerate(by_step(events, ends)):
            waited = waits(calls)
            for rank in sorted({call.rank for call in calls}):
                mine = [call for call in calls if call.rank == rank]
                sent, seconds = sum(call.sent_bytes for call in mine), busy(mine)
                numbers = {
                    "sent bytes": sent,
                    "bytes a second": sent / seconds if seconds else 0.0,
                    "seconds waited": sum(s for (r, _), s in waited.items() if r == rank),
                }
                for name, number in numbers.items():
                    self.writer.add_scalar(f"{name}/rank {rank}", number, step)

    def memory(self, peak_bytes: Sequence[int], step: int = 0) -> None:
        """The most bytes of tensors at once, by rank: a run's `peak_bytes`."""
        for rank, number in enumerate(peak_bytes):
            self.writer.add_scalar(f"peak bytes/rank {rank}", number, step)


def by_step(events: Iterable[Any], ends: str = "barrier") -> list[list[Any]]:
    """The events of each step, of all ranks: a rank's step ends with its next call of that name.

    What comes after the last such call belongs to no step.
    """
    steps: list[list[Any]] = []
    place: dict[int, int] = {}
    found: dict[int, list[Any]] = {}
    for event in sorted(events, key=lambda event: event.start):
        found.setdefault(event.rank, []).append(event)
        if event.op == ends:
            number = place.setdefault(event.rank, 0)
            place[event.rank] += 1
            if number == len(steps):
                steps.append([])
            steps[number] += found.pop(event.rank)
    return steps


def busy(events: Iterable[Any]) -> float:
    """Seconds in which at least one of a rank's calls was under way."""
    seconds, until = 0.0, 0.0
    for event in sorted(events, key=lambda event: event.start):
        seconds += max(0.0, event.end - max(event.start, until))
        until = max(until, event.end)
    return seconds
