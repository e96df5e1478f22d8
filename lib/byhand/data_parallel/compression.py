"""Three ways to add up a bucket of gradients over ranks: as it is, in half the bytes, or in few.

A reducer is made from a flat tensor, which it keeps, and then serves step after step:

    start(group)    begins to send; the rank may go on computing, but not touch the flat tensor
    finish()        waits; now the flat tensor holds the sum over ranks, the same on every rank

What it carries from step to step (TopK's error) is its own. n ranks, N elements in the bucket.
"""

from __future__ import annotations

import math

import torch
import torch.distributed as dist
from torch import Tensor


class Sum:
    """The exact sum. One all-reduce: 2 (n-1)/n · N elements sent per rank.

    >>> def total(rank, world_size):
    ...     flat = torch.tensor([1.0, rank])
    ...     work = Sum(flat)
    ...     work.start(None)
    ...     work.finish()
    ...     return flat.tolist()
    >>> launch(total, 3).results
    [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, flat: Tensor):
        self.flat = flat

    def start(self, group: dist.ProcessGroup | None) -> None:
        """Begin the all-reduce, in place."""
        self.pending = dist.all_reduce(self.flat, group=group, async_op=True)

    def finish(self) -> None:
        """Wait for it."""
        self.pending.wait()


class Float16(Sum):
    """The sum of the gradients rounded to float16: 2 (n-1)/n · N elements of 2 bytes per rank.

    About three decimal digits arrive. What is smaller than 6e-8 counts as zero, and a sum above
    65 504 becomes infinite.

    >>> def total(rank, world_size):
    ...     flat = torch.tensor([1e-9, 1.0 + rank])
    ...     work = Float16(flat)
    ...     work.start(None)
    ...     work.finish()
    ...     return flat.tolist()
    >>> run = launch(total, 2)
    >>> run.results[0], run.ledger.events[0].payload_bytes
    ([0.0, 3.0], 4)
    """

    def start(self, group: dist.ProcessGroup | None) -> None:
        """Round, and begin the all-reduce of the rounded copy."""
        self.rounded = self.flat.to(torch.float16)
        self.pending = dist.all_reduce(self.rounded, group=group, async_op=True)

    def finish(self) -> None:
        """Wait for it and widen the sum again."""
        super().finish()
        self.flat.copy_(self.rounded)


class TopK:
    """Each rank sends only its `fraction` largest elements, and remembers what it left out.

    What was left out (`error`) is added to the next step's gradient, so nothing is lost, only
    late: error feedback. Two all-gathers, of K values and K positions (int32) a rank, K the
    fraction of N, rounded up: (n-1) · K · (element + 4) bytes sent per rank.
    Source: Stich, Cordonnier and Jaggi 2018, arXiv:1809.07599, algorithm 1.

    >>> def total(rank, world_size):
    ...     flat = torch.tensor([5.0, 1.0, -2.0, 0.5])
    ...     work = TopK(flat, fraction=0.25)
    ...     work.start(None)
    ...     work.finish()
    ...     return flat, work.error
    >>> launch(total, 2).results[0]
    (tensor([10.,  0.,  0.,  0.]), tensor([ 0.0000,  1.0000, -2.0000,  0.5000]))
    """

    def __init__(self, flat: Tensor, fraction: float = 0.01, error_feedback: bool = True):
        """Keep `flat` [N]. `error_feedback=False` is for seeing what goes wrong without it.

        Raises:
            ValueError: a fraction that is not above 0 and at most 1.
        """
        if not 0 < fraction <= 1:
            raise ValueError(f"the fraction sent is {fraction}; it must be above 0 and at most 1")
        self.flat, self.error_feedback = flat, error_feedback
        self.num_sent = math.ceil(fraction * flat.numel())
        self.error = torch.zeros_like(flat)

    def start(self, group: dist.ProcessGroup | None) -> None:
        """Choose what to send, keep the rest as the error, and begin the two all-gathers."""
        self.flat += self.error
        chosen = self.flat.abs().topk(self.num_sent, sorted=False).indices
        sent = [self.flat[chosen], chosen.int()]
        if self.error_feedback:
            self.error.copy_(self.flat).index_fill_(0, chosen, 0)
        world_size = dist.get_world_size(group)
        self.arrived = [[torch.empty_like(part) for _ in range(world_size)] for part in sent]
        self.pending = [
            dist.all_gather(parts, part, group=group, async_op=True)
            for parts, part in zip(self.arrived, sent, strict=True)
        ]

    def finish(self) -> None:
        """Wait for them, and add up what arrived: rank by rank, so that all ranks round alike."""
        for pending in self.pending:
            pending.wait()
        self.flat.zero_()
        for values, positions in zip(*self.arrived, strict=True):
            self.flat[positions.long()] += values
        self.arrived = []
