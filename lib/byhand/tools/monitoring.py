"""A run watched: bandwidth over time, from the kernel and from the ledger; TensorBoard scalars.

The kernel's counter, sampled while a rank works, says what really arrived when (`arrivals`). The
ledger knows when a call began and ended and no more: there a call's bytes are spread evenly over
that time (`rates`), so a rank that waits for others shows a low rate for long, and calls that
overlap show more than the link carries. Times begin with the first call. A timeline for
ui.perfetto.dev is `run.ledger.to_perfetto(path)`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from byhand.runtime import Run
from byhand.runtime.ledger import Event
from byhand.words import counted

if TYPE_CHECKING:
    from byhand.figures.style import CourseFigure


@dataclass(repr=False)
class Rates:
    """Bytes per second that each rank sent or received, in intervals of equal length."""

    interval_seconds: float
    by_rank: list[list[float]]

    @property
    def seconds(self) -> float:
        """From the first call to the end of the last."""
        return self.interval_seconds * max(map(len, self.by_rank))

    @property
    def total_bytes(self) -> float:
        """What all ranks sent, or received, together."""
        return self.interval_seconds * sum(map(sum, self.by_rank))

    def __repr__(self) -> str:
        busiest = max((max(rates) for rates in self.by_rank), default=0.0)
        return f"{self.total_bytes:,.0f} bytes sent; {busiest / 1e6:.1f} MB/s by one rank at most"

    def _repr_svg_(self) -> str:
        return self.picture()._repr_svg_()

    def picture(self, title: str | None = None, limit: float | None = None) -> CourseFigure:
        """One row a rank; `limit` draws the link's rate."""
        from byhand.figures import bandwidth_over_time

        return bandwidth_over_time(
            self.by_rank, self.interval_seconds, repr(self) if title is None else title, limit
        )


Samples = list[tuple[float, int]]  # (seconds on this machine's clock, bytes received so far)


@contextmanager
def arrivals(every_seconds: float = 0.002) -> Iterator[Samples]:
    """On a rank: what the kernel says its network namespace has received, sampled meanwhile.

    On a virtual network that is this rank's own port; elsewhere the whole machine's.
    """
    samples, ended = [_sample()], threading.Event()

    def keep_sampling() -> None:
        while not ended.wait(every_seconds):
            samples.append(_sample())

    thread = threading.Thread(target=keep_sampling, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()
        samples.append(_sample())


def _sample() -> tuple[float, int]:
    return time.monotonic(), psutil.net_io_counters(nowrap=False).bytes_recv


def arrived(samples: Sequence[Samples], num_intervals: int = 120) -> Rates:
    """The bytes per second that each rank received, from each rank's samples."""
    begin = min(times[0][0] for times in samples)
    interval = max(times[-1][0] - begin for times in samples) / num_intervals
    edges = [begin + interval * number for number in range(num_intervals + 1)]
    by_rank = []
    for one in samples:
        at_edges = np.interp(edges, *zip(*one, strict=True))
        by_rank.append((np.diff(at_edges) / interval).tolist())
    return Rates(interval, by_rank)


def rates(run: Run, num_intervals: int = 120, op: str | None = None) -> Rates:
    """What each rank of a run sent, in all calls or those of one `op`, from the first to the last.

    Raises:
        ValueError: no interval, or nothing to draw.
    """
    events = run.ledger.select(op)
    if num_intervals < 1 or not events:
        given = f"{counted(num_intervals, 'interval')}, {counted(len(events), 'call')}"
        raise ValueError(f"{given}: at least 1 of each")
    begin = min(event.start for event in events)
    interval = max(max(event.end for event in events) - begin, 1e-9) / num_intervals
    by_rank = [
        _spread(run.ledger.select(op, rank), begin, interval, num_intervals)
        for rank in range(run.world_size)
    ]
    return Rates(interval, by_rank)


def _spread(
    events: Sequence[Event], begin: float, interval: float, num_intervals: int
) -> list[float]:
    found = [0.0] * num_intervals
    for event in events:
        start = min(event.start - begin, interval * num_intervals * (1 - 1e-9))
        seconds = max(event.end - begin - start, 1e-9)
        number = int(start / interval)
        while number < num_intervals and number * interval < start + seconds:
            inside = min((number + 1) * interval, start + seconds) - max(number * interval, start)
            found[number] += event.sent_bytes * max(inside, 0.0) / seconds / interval
            number += 1
    return found


def to_tensorboard(run: Run, folder: str | Path, num_intervals: int = 120) -> Path:
    """Write each rank's megabytes per second, and its bytes by collective, for `tensorboard`.

    A step is a millisecond of the run.
    """
    from torch.utils.tensorboard import SummaryWriter

    watched = rates(run, num_intervals)
    with SummaryWriter(str(folder)) as writer:
        for rank, sent in enumerate(watched.by_rank):
            for number, rate in enumerate(sent):
                step = round(1e3 * number * watched.interval_seconds)
                writer.add_scalar(f"MB per second/rank {rank}", rate / 1e6, step)
            for op in sorted({event.op for event in run.ledger.select(rank=rank)}):
                total = run.ledger.sent_bytes(op, rank)
                writer.add_scalar(f"bytes sent/rank {rank} {op}", total, 0)
    return Path(folder)
