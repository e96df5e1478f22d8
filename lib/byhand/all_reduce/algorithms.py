"""All-reduce algorithms as data: rounds of transfers, for any number of ranks. Pure.

The tensor is cut into pieces. A *transfer* carries pieces from one rank to another, which either
adds them to its own (`reduces`) or replaces its own. The transfers of a *round* happen at once.
Every algorithm is such a list; `check` proves that it sums, `byhand.all_reduce` carries it out.

n ranks, S bytes; p the largest power of two up to n; L ranks on each of H hosts:

    algorithm           rounds             bytes sent by a rank
    ring                2(n-1)             2(n-1)/n · S
    double ring         2(n-1)             2(n-1)/n · S, half of it each way round
    tree                2⌊log₂ n⌋          S times its neighbours in the tree, 1 to 3
    double tree         2⌊log₂ n⌋          S/2 times its neighbours in both trees: at most 2S
    recursive doubling  log₂ p (*)         log₂ p · S (*)
    halving-doubling    2 log₂ p (*)       2(p-1)/p · S (*)
    hierarchical        2(L-1) + 2(H-1)    2(LH-1)/(LH) · S, of which 2(H-1)/H · S/L to other hosts

(*) n not a power of two: 2 rounds more; ranks from p on send S in all, their n-p partners S more.
A host so sends 2(H-1)/H · S to others: S where H is 2, and a ring's link 2(n-1)/n · S.
Sources: Thakur, Rabenseifner & Gropp 2005, Optimization of collective communication operations in
MPICH; Patarasuk & Yuan 2009 (ring); Sanders, Speck & Träff 2009 (double tree).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple


class Transfer(NamedTuple):
    """Pieces start..stop-1 go from `sender` to `receiver`, ranks within the group."""

    sender: int
    receiver: int
    start: int
    stop: int
    reduces: bool


Round = tuple[Transfer, ...]
Rounds = list[Round]


class AlgorithmError(ValueError):
    """An algorithm does not do what it is for; the message names the first wrong transfer."""


@dataclass(frozen=True)
class Algorithm:
    """Rounds of transfers among `num_ranks` ranks of a tensor of `num_pieces` pieces."""

    num_ranks: int
    num_pieces: int
    rounds: tuple[Round, ...]

    def sent_elements(self, rank: int, num_elements: int) -> int:
        """How many elements `rank` sends, of a tensor of `num_elements`, cut into pieces once."""
        bounds = cut(num_elements, self.num_pieces)
        mine = (t for transfers in self.rounds for t in transfers if t.sender == rank)
        return sum(bounds[t.stop] - bounds[t.start] for t in mine)

    def in_turn(self, ranks_per_host: int = 1) -> float:
        """What passes the fullest link in each round, added up, in tensors.

        A host has one link out and one in, which its ranks share; inside it, so has every rank.
        """
        return sum(fullest for fullest, _ in self.loads(ranks_per_host)) / self.num_pieces

    def leaves_host(self, ranks_per_host: int) -> float:
        """What the first host's ranks send to other hosts, in tensors."""
        return sum(leaving for _, leaving in self.loads(ranks_per_host)) / self.num_pieces

    def loads(self, ranks_per_host: int) -> list[tuple[int, int]]:
        """By round, in pieces: what passes the fullest link, and what leaves the first host."""
        found = []
        for transfers in self.rounds:
            loads: Counter[tuple] = Counter()
            for sender, receiver, start, stop, _ in transfers:
                hosts = sender // ranks_per_host, receiver // ranks_per_host
                out, into = ("rank", sender), ("rank", receiver)
                if hosts[0] != hosts[1]:
                    out, into = (("host", host) for host in hosts)
                loads["out", out] += stop - start
                loads["in", into] += stop - start
            found.append((max(loads.values(), default=0), loads["out", ("host", 0)]))
        return found


def cut(num_elements: int, num_pieces: int) -> list[int]:
    """Where pieces begin, and the end: the first num_elements mod num_pieces have one more."""
    length, longer = divmod(num_elements, num_pieces)
    return [piece * length + min(piece, longer) for piece in range(num_pieces + 1)]


def ring(num_ranks: int) -> Algorithm:
    """Reduce-scatter, then all-gather, both around the ring 0 → 1 → … → n-1 → 0."""
    ranks, pieces = range(num_ranks), _each(num_ranks)
    rounds = reduce_scatter_rounds(ranks, pieces) + all_gather_rounds(ranks, pieces)
    return Algorithm(num_ranks, num_ranks, tuple(rounds))


def ring_reduce_scatter(num_ranks: int) -> Algorithm:
    """n-1 rounds; rank j is left with the sum of piece j."""
    rounds = reduce_scatter_rounds(range(num_ranks), _each(num_ranks))
    return Algorithm(num_ranks, num_ranks, tuple(rounds))


def ring_all_gather(num_ranks: int) -> Algorithm:
    """n-1 rounds; rank j begins with piece j."""
    rounds = all_gather_rounds(range(num_ranks), _each(num_ranks))
    return Algorithm(num_ranks, num_ranks, tuple(rounds))


def double_ring(num_ranks: int) -> Algorithm:
    """Two rings at once: the first n pieces go one way round, the others the other way."""
    ranks, pieces = range(num_ranks), _each(2 * num_ranks)
    rings = [(ranks, pieces[:num_ranks]), (ranks[::-1], pieces[num_ranks:])]
    both = [reduce_scatter_rounds(*ring) + all_gather_rounds(*ring) for ring in rings]
    return Algorithm(num_ranks, 2 * num_ranks, together(both))


def hierarchical(num_ranks: int, ranks_per_host: int) -> Algorithm:
    """Reduce-scatter inside each host, a ring across hosts for every shard, all-gather inside.

    Rank r is on host r // ranks_per_host. All ranks of a host are active across hosts.

    Raises:
        ValueError: the ranks do not fill their hosts.
    """
    if ranks_per_host < 1 or num_ranks % ranks_per_host:
        raise ValueError(
            f"{num_ranks} ranks do not fill hosts of {ranks_per_host}: ranks_per_host must "
            "divide the number of ranks"
        )
    num_hosts = num_ranks // ranks_per_host
    hosts = [range(ranks_per_host * h, ranks_per_host * (h + 1)) for h in range(num_hosts)]
    shards = [(num_hosts * i, num_hosts * (i + 1)) for i in range(ranks_per_host)]
    pieces = _each(num_ranks)
    across = []
    for place, (start, stop) in enumerate(shards):
        ring_of = [host[place] for host in hosts], pieces[start:stop]
        across.append(reduce_scatter_rounds(*ring_of) + all_gather_rounds(*ring_of))
    inside = [reduce_scatter_rounds(host, shards) for host in hosts]
    inside_again = [all_gather_rounds(host, shards) for host in hosts]
    rounds = together(inside) + together(across) + together(inside_again)
    return Algorithm(num_ranks, num_ranks, rounds)


def check(algorithm: Algorithm) -> None:
    """Prove that the algorithm is an all-reduce: every rank ends with every rank's term, once.

    Raises:
        AlgorithmError: a term would be added twice, or is missing at the end; says where.
    """
    everyone = set(range(algorithm.num_ranks))
    for (rank, piece), found in history(algorithm)[-1].items():
        if found != everyone:
            missing = min(everyone - found)
            raise AlgorithmError(
                f"piece {piece} on rank {rank} ends without the term of rank {missing}"
            )


def history(algorithm: Algorithm) -> list[dict[tuple[int, int], set[int]]]:
    """Before the first round and after each: by (rank, piece), whose terms it is the sum of.

    Raises:
        AlgorithmError: a term would be added twice.
    """
    ranks, pieces = range(algorithm.num_ranks), range(algorithm.num_pieces)
    moments = [{(rank, piece): {rank} for rank in ranks for piece in pieces}]
    for number, transfers in enumerate(algorithm.rounds, 1):
        before, terms = moments[-1], dict(moments[-1])
        for transfer in transfers:
            for piece in range(transfer.start, transfer.stop):
                sent, place = before[transfer.sender, piece], (transfer.receiver, piece)
                twice = sent & terms[place] if transfer.reduces else None
                if twice:
                    raise AlgorithmError(
                        f"round {number}: rank {transfer.receiver} would add the term of rank "
                        f"{min(twice)} to piece {piece} a second time"
                    )
                terms[place] = sent | terms[place] if transfer.reduces else sent
        moments.append(terms)
    return moments


def reduce_scatter_rounds(ranks: Sequence[int], pieces: Sequence[tuple[int, int]]) -> Rounds:
    """n-1 rounds around `ranks`: the sum of pieces[j] starts on the rank after j, ends on j."""
    return _ring_rounds(ranks, pieces, first_step=1, reduces=True)


def all_gather_rounds(ranks: Sequence[int], pieces: Sequence[tuple[int, int]]) -> Rounds:
    """n-1 rounds around `ranks`: each passes on what came in the round before."""
    return _ring_rounds(ranks, pieces, first_step=0, reduces=False)


def _ring_rounds(
    ranks: Sequence[int], pieces: Sequence[tuple[int, int]], first_step: int, reduces: bool
) -> Rounds:
    n = len(ranks)
    return [
        tuple(
            Transfer(ranks[place], ranks[(place + 1) % n], *pieces[(place - step) % n], reduces)
            for place in range(n)
        )
        for step in range(first_step, first_step + n - 1)
    ]


def together(parts: list[Rounds]) -> tuple[Round, ...]:
    """Round i of the result is round i of all `parts`."""
    return tuple(sum(at_once, ()) for at_once in zip_longest(*parts, fillvalue=()))


def _each(num_pieces: int) -> list[tuple[int, int]]:
    return [(piece, piece + 1) for piece in range(num_pieces)]
