"""How fast ranks compute, and how long messages take on hosts that share their links. Pure.

An all-reduce is a ring, timed by alpha and beta. Its slowest link sets the pace: either the one
within a host, or those that leave it. All of a host's ranks share its links, and a group uses at
most as many of them as it has ranks on that host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byhand.communication_cost.model import AlphaBeta

Lists = Sequence[Sequence[int]] | np.ndarray
FREE = AlphaBeta(0.0, 0.0)


@dataclass(frozen=True)
class Machine:
    """A kind of host and its links, at the rates that are reached, not those of data sheets.

    inside: a message between two ranks of a host. between: bytes per second of each link that
    leaves a host; there are `links_per_host` of them for its `ranks_per_host` ranks. flops:
    operations a second of a large product on one rank; one whose narrowest side on it is w reaches
    w / (w + narrow) of them. memory: bytes of a rank; memory_rate: read and written in a second.

    >>> from byhand.communication_cost import AlphaBeta
    >>> machine = Machine(inside=AlphaBeta(0, 1 / 200e9), between=25e9, ranks_per_host=8)
    >>> machine.all_reduce([[0, 1, 2, 3]], 1e9), machine.all_reduce([[0, 8, 16, 24]], 1e9)
    (0.0075, 0.06)
    """

    inside: AlphaBeta = FREE
    between: float = math.inf
    ranks_per_host: int = 1 << 30
    links_per_host: int = 1
    flops: float = math.inf
    narrow: float = 0
    memory: float = math.inf
    memory_rate: float = math.inf

    def rate(self, width: float) -> float:
        """Operations a second of a product whose narrowest side on one rank is `width`."""
        return self.flops * width / (width + self.narrow)

    def seconds(self, op: str, groups: Lists, num_bytes: float) -> float:
        """Of one collective of that many bytes (nccl-tests' size) in each of these groups."""
        num_ranks = len(groups[0])
        return self.line(groups).seconds(op, num_ranks, num_bytes) if num_ranks > 1 else 0.0

    def all_reduce(self, groups: Lists, num_bytes: float) -> float:
        """Seconds of one all-reduce in each of these groups, all at once."""
        return self.seconds("all_reduce", groups, num_bytes)

    def send(self, pipelines: Lists, num_bytes: float, sender: int, receiver: int) -> float:
        """Seconds of a message between two stages, in all pipelines at once."""
        pairs = [(pipeline[sender], pipeline[receiver]) for pipeline in pipelines]
        return self.line(pairs).seconds("send", 2, num_bytes)

    def line(self, groups: Lists) -> AlphaBeta:
        """Seconds a round, and a byte, of messages within these groups, in all at once."""
        outside = self.load(groups) / self.between
        return AlphaBeta(self.inside.alpha, max(self.inside.beta, outside))

    def load(self, groups: Lists) -> float:
        """How many bytes the busiest link carries for each byte of a group's ring; 0: none leaves.

        Groups that leave their host share its links evenly.
        """
        hosts = np.sort(np.asarray(groups) // self.ranks_per_host, axis=1)
        leaving = hosts[hosts[:, 0] != hosts[:, -1]]
        if not len(leaving):
            return 0.0
        most = leaving.max() + 1
        places = np.arange(len(leaving))[:, None] * most + leaving  # one number a group and host
        places, ranks = np.unique(places, return_counts=True)
        groups_of_host = np.bincount(places % most)
        usable = min(ranks.min(), self.links_per_host)
        return float(max(groups_of_host.max() / self.links_per_host, 1 / usable))
