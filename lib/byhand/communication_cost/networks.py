"""Networks of links, and what rounds of messages cost on them. Pure.

    switch           every rank has one link out and one in; communication_cost's table
    ring             a link from each rank to the next; what goes further passes those between
    double_ring      the same with links both ways; a message takes the shorter way
    tree             a link each way between a rank and its parent (r-1)//2
    fully_connected  a link each way between any two ranks

A message waits for the alpha of every link on its way, then flows through all of them at once; a
link that several messages pass in a round takes the time of all their bytes. A round takes as long
as its slowest message. Simplified: no round begins before the last one has ended everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from byhand.communication_cost.model import AlphaBeta
from byhand.communication_cost.rounds import Message, rounds


class Hop(NamedTuple):
    """One link on the way, by name, and what it costs."""

    link: tuple[str, int, int]
    line: AlphaBeta


@dataclass(frozen=True)
class Network:
    """`way(sender, receiver)` are the links that a message passes."""

    num_ranks: int
    way: Callable[[int, int], list[Hop]]

    def seconds(self, algorithm: str, num_bytes: float, ranks_per_host: int = 1) -> float:
        """One call over all ranks, round after round: arguments as for `rounds`."""
        messages = rounds(algorithm, self.num_ranks, num_bytes, ranks_per_host)
        return sum(self._round_seconds(at_once) for at_once in messages)

    def loads(self, at_once: list[Message]) -> dict[tuple[str, int, int], float]:
        """What passes each link in one round."""
        loads: dict[tuple[str, int, int], float] = defaultdict(float)
        for sender, receiver, num_bytes in at_once:
            for link, _ in self.way(sender, receiver):
                loads[link] += num_bytes
        return loads

    def _round_seconds(self, at_once: list[Message]) -> float:
        loads, slowest = self.loads(at_once), 0.0
        for sender, receiver, _ in at_once:
            way = self.way(sender, receiver)
            latency = sum(line.alpha for _, line in way)
            slowest = max(slowest, latency + max(loads[link] * line.beta for link, line in way))
        return slowest


def switch(num_ranks: int, line: AlphaBeta) -> Network:
    """Any rank to any other; each sends through one port and receives through one."""
    return Network(num_ranks, lambda a, b: _ports(a, b, line))


def ring(num_ranks: int, line: AlphaBeta) -> Network:
    """A link from each rank to the next, one way."""

    def way(a: int, b: int) -> list[Hop]:
        steps = range((b - a) % num_ranks)
        return [_hop("ring", a + s, a + s + 1, num_ranks, line) for s in steps]

    return Network(num_ranks, way)


def double_ring(num_ranks: int, line: AlphaBeta) -> Network:
    """A link from each rank to the next, and one to the rank before."""

    def way(a: int, b: int) -> list[Hop]:
        """The shorter way round; ahead where both are as long."""
        ahead = (b - a) % num_ranks
        step = 1 if 2 * ahead <= num_ranks else -1
        places = range(ahead if step == 1 else num_ranks - ahead)
        name = "ring" if step == 1 else "ring back"
        return [_hop(name, a + step * s, a + step * (s + 1), num_ranks, line) for s in places]

    return Network(num_ranks, way)


def tree(num_ranks: int, line: AlphaBeta) -> Network:
    """A link each way between a rank and its parent (r-1)//2."""

    def way(a: int, b: int) -> list[Hop]:
        """Up to where both ways meet, and down: the larger number is never above the other."""
        up, down = [], []
        while a != b:
            if a > b:
                up.append(Hop(("tree", a, (a - 1) // 2), line))
                a = (a - 1) // 2
            else:
                down.append(Hop(("tree", (b - 1) // 2, b), line))
                b = (b - 1) // 2
        return up + down[::-1]

    return Network(num_ranks, way)


def fully_connected(num_ranks: int, line: AlphaBeta) -> Network:
    """A link each way between any two ranks."""
    return Network(num_ranks, lambda a, b: [Hop(("pair", a, b), line)])


def renumbered(network: Network, order: Sequence[int]) -> Network:
    """The same links, with rank r where `order[r]` was: an order is an algorithm too."""
    return Network(network.num_ranks, lambda a, b: network.way(order[a], order[b]))


def depth_first(num_ranks: int) -> list[int]:
    """A tree's ranks, each before those below it: a ring in this order uses every link once."""
    order, left = [], [0]
    while left:
        rank = left.pop()
        order.append(rank)
        left += [child for child in (2 * rank + 2, 2 * rank + 1) if child < num_ranks]
    return order


TOPOLOGIES: dict[str, Callable[[int, AlphaBeta], Network]] = {
    "switch": switch,
    "ring": ring,
    "double_ring": double_ring,
    "tree": tree,
    "fully_connected": fully_connected,
}


def _ports(a: int, b: int, line: AlphaBeta) -> list[Hop]:
    return [Hop(("out", a, a), line), Hop(("in", b, b), AlphaBeta(0, line.beta))]


def _hop(name: str, a: int, b: int, num_ranks: int, line: AlphaBeta) -> Hop:
    return Hop((name, a % num_ranks, b % num_ranks), line)
