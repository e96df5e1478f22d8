"""All-reduce shown: every round of an algorithm, and what two hosts' links carry."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from byhand import all_reduce
from byhand.all_reduce import algorithms, trees
from byhand.all_reduce.algorithms import Algorithm, cut, history
from byhand.runtime import Ledger, Run, VirtualNetwork, launch
from byhand.words import counted

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from ipywidgets import VBox
    from matplotlib.figure import Figure

    from byhand.figures.style import CourseFigure

MOST_RANKS = 8  # that can be shown
ALGORITHMS: dict[str, Callable[[int], Algorithm]] = {
    "ring": algorithms.ring,
    "double ring": algorithms.double_ring,
    "tree": trees.tree,
    "double tree": trees.double_tree,
    "recursive doubling": trees.recursive_doubling,
    "halving-doubling": trees.halving_doubling,
    "hierarchical": lambda n: algorithms.hierarchical(n, _half(n)),
}


def _half(num_ranks: int) -> int:
    """How many ranks a host has: two hosts where that goes, one rank each where it does not."""
    return num_ranks // 2 if num_ranks % 2 == 0 else 1


def by_name(name: str) -> Callable[..., torch.Tensor]:
    """The function of byhand.all_reduce that `name` in ALGORITHMS means; hosts as there.

    Raises:
        ValueError: no such algorithm.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"no algorithm is called {name!r}: there are {', '.join(ALGORITHMS)}")
    function = getattr(all_reduce, name.replace(" ", "_").replace("-", "_") + "_all_reduce")
    if name != "hierarchical":
        return function
    return lambda tensor: function(tensor, ranks_per_host=_half(dist.get_world_size()))


@dataclass(frozen=True)
class Rounds:
    """An algorithm, and the `ledger` of its run on a tensor of `num_elements` floats."""

    name: str
    algorithm: Algorithm
    num_elements: int
    ledger: Ledger

    def picture(self, number: int) -> CourseFigure:
        """What the ranks hold after round `number`, its messages, and bytes by link until then."""
        from byhand.figures import round_picture

        last = len(self.algorithm.rounds)
        number = min(number, last)
        terms = history(self.algorithm)[number]
        complete = sum(len(origins) == self.algorithm.num_ranks for origins in terms.values())
        title = f"{self.name.capitalize()}, round {number} of {last}: "
        title += f"{complete} of {len(terms)} shards are complete"
        transfers = self.algorithm.rounds[number - 1] if number else ()
        return round_picture(terms, transfers, self.sent(number), title)

    def sent(self, number: int) -> dict[tuple[int, int], float]:
        """By (sender, receiver), the part of the tensor sent until round `number`."""
        bounds = cut(self.num_elements, self.algorithm.num_pieces)
        total: dict[tuple[int, int], float] = defaultdict(float)
        for transfer in (t for transfers in self.algorithm.rounds[:number] for t in transfers):
            length = bounds[transfer.stop] - bounds[transfer.start]
            total[transfer.sender, transfer.receiver] += length / self.num_elements
        return dict(total)

    def __str__(self) -> str:
        messages = counted(self.ledger.count("send"), "message")
        return (
            f"The ledger of this run: {messages}, and the busiest rank "
            f"sent {self.busiest / 4 / self.num_elements:.3g} times the tensor."
        )

    @property
    def busiest(self) -> int:
        """The most bytes that a rank sent, by the ledger."""
        return max(self.ledger.sent_bytes(rank=rank) for rank in range(self.algorithm.num_ranks))


def all_rounds(algorithm: Algorithm, title: str, hosts: int = 1) -> CourseFigure:
    """Every round of the algorithm: what ranks hold, and their messages. Starts no rank."""
    from byhand import figures

    return figures.all_rounds(history(algorithm), algorithm.rounds, title, hosts)


def shared_wire(plans: Mapping[str, Algorithm], ranks_per_host: int, most: float) -> Figure:
    """When the first host's one wire is busy, by algorithm; bars are cut off at `most` tensors."""
    from byhand.figures import busy_bars

    rows, told = {}, []
    for name, plan in plans.items():
        loads = plan.loads(ranks_per_host)
        rows[name] = [(leaving > 0, fullest / plan.num_pieces) for fullest, leaving in loads]
        busy = sum(length for used, length in rows[name] if used) / plan.in_turn(ranks_per_host)
        told.append(f"{name} {100 * busy:.0f}%")
    title = f"The wire is busy: {', '.join(told)} of the time"
    return busy_bars(rows, title, "tensors in turn", most)


@lru_cache(maxsize=32)
def watch_rounds(name: str, num_ranks: int, num_elements: int = 1024) -> Rounds:
    """Run an algorithm on that many ranks, to be shown round by round.

    Raises:
        ValueError: no such algorithm, or not 1 to 8 ranks.
    """
    if not 1 <= num_ranks <= MOST_RANKS:
        raise ValueError(f"1 to {MOST_RANKS} ranks can be shown, not {num_ranks}")
    by_name(name)
    run = launch(timed, num_ranks, (name, num_elements))
    return Rounds(name, ALGORITHMS[name](num_ranks), num_elements, run.ledger)


def timed(rank: int, world_size: int, name: str, num_elements: int) -> tuple[float, float]:
    """Sum a tensor of ones, from a barrier on: when this rank called, and when it had the sum."""
    call, tensor = by_name(name), torch.ones(num_elements)
    dist.barrier()
    start = time.monotonic()
    call(tensor)
    return start, time.monotonic()


def crossing(
    first: Sequence[tuple[float, ...]], second: Sequence[tuple[float, ...]]
) -> float | None:
    """From which size on `second` takes less time than `first`; both (bytes, seconds, …) by size.

    Between two sizes, where straight lines through the points would meet; None if they do not.
    """
    ratios = [a[1] / b[1] for a, b in zip(first, second, strict=True)]
    behind = max((place for place, ratio in enumerate(ratios) if ratio < 1), default=None)
    if behind in (None, len(ratios) - 1):
        return None
    share = log(1 / ratios[behind]) / log(ratios[behind + 1] / ratios[behind])
    return first[behind][0] * (first[behind + 1][0] / first[behind][0]) ** share


@dataclass(frozen=True)
class TwoHosts:
    """Runs of several algorithms on one virtual network, by name."""

    network: VirtualNetwork
    num_bytes: int
    runs: dict[str, Run]

    def seconds(self, name: str) -> float:
        """How long it took, from the last rank's call to the last rank's result."""
        starts, ends = zip(*self.runs[name].results, strict=True)
        return max(ends) - max(starts)

    def crossed(self, name: str, host: int) -> int:
        """Bytes that `host` sent to the other, by the ledger."""
        where = self.network.host
        return sum(
            event.sent_bytes
            for event in self.runs[name].ledger.select("send")
            if where(event.rank) == host and where(event.peer) != host
        )

    def __str__(self) -> str:
        lines = [f"{'':18}seconds by its bytes   measured"]
        for name in self.runs:
            by_bytes = self.crossed(name, 0) / self.network.bytes_per_second
            lines.append(f"{name:18}{by_bytes:>20.2f}{self.seconds(name):>11.2f}")
        return "\n".join(lines)

    def picture(self) -> CourseFigure:
        """Bytes out of host 0, by the ledger (above) and by the kernel's count (below)."""
        from byhand.figures import bytes_bars

        ledger = {name: {"send": self.crossed(name, 0)} for name in self.runs}
        sent = {name: run.traffic.hosts[0].sent for name, run in self.runs.items()}
        kernel = {name: {"send": count} for name, count in sent.items()}
        first, *_, last = self.runs
        times = f"{sent[first] / sent[last]:.2f} times what {last} sends"
        title = f"Out of a host, the {first} sends {times}"
        return bytes_bars(ledger, kernel, title)


def compare_on_hosts(
    network: VirtualNetwork, num_bytes: int, names: Sequence[str] = ("ring", "hierarchical")
) -> TwoHosts:
    """Run each algorithm on the network, on a tensor of num_bytes.

    Raises:
        OSError: the kernel refuses; see byhand.runtime.why_no_network.
    """
    runs = {
        name: launch(timed, network.world_size, (name, num_bytes // 4), network=network)
        for name in names
    }
    return TwoHosts(network, num_bytes, runs)


def all_reduce_explorer(name: str = "ring", world_size: int = 4) -> VBox:
    """Choose the algorithm, the ranks and the tensor; go through the rounds by hand, or play them.

    Each choice runs it once on that many ranks; the sentence is what the run's ledger says.
    """
    from ipywidgets import Play, dlink, jslink

    from byhand.tools.explorer import explorer, menu, slider

    algorithm = menu("algorithm", ALGORITHMS, name)
    ranks = slider("ranks", world_size, 1, MOST_RANKS)
    size = menu("floats", [1, 7, 1024, 1 << 20], 1024)
    number, play = slider("round", 1, 0, 1), Play(interval=900, max=1)
    jslink((play, "value"), (number, "value"))
    dlink((number, "max"), (play, "max"))
    few = {"ranks": (3, 4, 6), "floats": (), "round": range(11)}
    return explorer([[algorithm, ranks, size], [number, play]], draw_round, few, num_rounds)


def num_rounds(name: str, num_ranks: int, _: int) -> int:
    """Of an algorithm among that many ranks."""
    return len(ALGORITHMS[name](num_ranks).rounds)


def draw_round(
    name: str, num_ranks: int, num_elements: int, number: int
) -> tuple[CourseFigure, str]:
    """A round's picture, and what the ledger counted."""
    rounds = watch_rounds(name, num_ranks, num_elements)
    return rounds.picture(number), str(rounds)
