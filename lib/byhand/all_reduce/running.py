"""Carries out the algorithms, round by round: the one engine of all but the ring.

Each function takes `tensor`, partial, of any shape, and returns its sum over the ranks of `group`
(None: all), replicated, in a new tensor. All ranks return the same bits. Rounds and bytes are those
of the table in byhand.all_reduce.algorithms; a large tensor goes in blocks, in as many more
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import torch
import torch.distributed as dist
from torch import Tensor

from byhand import collectives
from byhand.all_reduce import algorithms, trees
from byhand.all_reduce.algorithms import Algorithm, cut
from byhand.all_reduce.rings import MOST_BLOCKS, num_blocks, sendable

Group = dist.ProcessGroup | None
LINK_BLOCK_BYTES = 2 << 20  # of what a slow link waits for, first and last


def run_rounds(
    algorithm: Algorithm,
    total: Tensor,
    ranks: Sequence[int],
    group: Group = None,
    num_blocks: int = 1,
) -> None:
    """The algorithm on flat `total`, in place; `ranks` are the global ranks of its 0, 1, ….

    The blocks take turns: each ends its round and begins its next one, in which it travels while
    the others are added. All ranks go through rounds and blocks in one order, so none waits in a
    circle.
    """
    parts = total.tensor_split(num_blocks)
    blocks = [_rounds_of(algorithm, part, ranks, group) for part in parts]
    for _ in zip_longest(*blocks):
        pass


def _rounds_of(
    algorithm: Algorithm, block: Tensor, ranks: Sequence[int], group: Group
) -> Iterator[None]:
    """One block's way: in each round its messages, a pause while they travel, its additions.

    Receives begin first, as in `run_ring`.
    """
    me, bounds = ranks.index(dist.get_rank()), cut(len(block), algorithm.num_pieces)
    for transfers in algorithm.rounds:
        sends, receives, to_add = [], [], []
        for sender, receiver, start, stop, reduces in transfers:
            own = block[bounds[start] : bounds[stop]]
            if sender == me:
                sends.append(dist.P2POp(dist.isend, own, ranks[receiver], group))
            elif receiver == me:
                arrived = torch.empty_like(own) if reduces else own
                receives.append(dist.P2POp(dist.irecv, arrived, ranks[sender], group))
                to_add += [(own, arrived)] if reduces else []
        if sends or receives:
            travelling = dist.batch_isend_irecv(receives + sends)
            yield
            for message in travelling:
                message.wait()
        for own, arrived in to_add:
            own += arrived


def double_ring_all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """Half the tensor each way round: the bytes of one ring, half of them per direction.

    >>> run = launch(lambda rank, world_size: double_ring_all_reduce(torch.ones(1000)), 4)
    >>> [run.ledger.sent_bytes("send", rank) for rank in range(4)]
    [6000, 6000, 6000, 6000]
    >>> sorted({(event.rank, event.peer) for event in run.ledger.select("send")})
    [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]
    """
    return _by_algorithm(algorithms.double_ring(dist.get_world_size(group)), tensor, group)


def tree_all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """Up a binary tree and down again: 2⌊log₂ n⌋ rounds, S bytes to each neighbour.

    >>> run = launch(lambda rank, world_size: tree_all_reduce(torch.ones(1000)), 4)
    >>> [run.ledger.sent_bytes("send", rank) for rank in range(4)]
    [8000, 8000, 4000, 4000]
    """
    return _by_algorithm(trees.tree(dist.get_world_size(group)), tensor, group)


def double_tree_all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """Half the tensor in each of two trees, of which a rank is a leaf in one at least.

    >>> run = launch(lambda rank, world_size: double_tree_all_reduce(torch.ones(1000)), 4)
    >>> [run.ledger.sent_bytes("send", rank) for rank in range(4)]
    [4000, 8000, 8000, 4000]
    """
    return _by_algorithm(trees.double_tree(dist.get_world_size(group)), tensor, group)


def recursive_doubling_all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """Whole tensors between ranks at distance 1, 2, 4, …: log₂ n rounds, log₂ n · S bytes.

    >>> run = launch(lambda rank, world_size: recursive_doubling_all_reduce(torch.ones(1000)), 4)
    >>> [(event.peer, event.payload_bytes) for event in run.ledger.select("send", rank=0)]
    [(1, 4000), (2, 4000)]
    """
    return _by_algorithm(trees.recursive_doubling(dist.get_world_size(group)), tensor, group)


def halving_doubling_all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """The ring's bytes in a tree's rounds, where n is a power of two: 2 log₂ n rounds.

    >>> run = launch(lambda rank, world_size: halving_doubling_all_reduce(torch.ones(1000)), 4)
    >>> [event.payload_bytes for event in run.ledger.select("send", rank=0)]
    [2000, 1000, 1000, 2000]
    """
    return _by_algorithm(trees.halving_doubling(dist.get_world_size(group)), tensor, group)


def hierarchical_all_reduce(tensor: Tensor, group: Group = None, *, ranks_per_host: int) -> Tensor:
    """Inside each host, across hosts, inside again; rank r is on host r // ranks_per_host.

    Each of a host's ranks takes its shard across, so a host sends 2(H-1)/H · S bytes to others. The
    link between hosts stands still while the first block and the last go inside: they are small.

    Raises:
        ValueError: the ranks do not fill their hosts.

    >>> run = launch(lambda rank, _: hierarchical_all_reduce(torch.ones(1000), ranks_per_host=2), 4)
    >>> run.ledger.bytes_between_hosts(ranks_per_host=2)
    8000.0
    """
    algorithm = algorithms.hierarchical(dist.get_world_size(group), ranks_per_host)
    most = max(MOST_BLOCKS, tensor.nbytes // LINK_BLOCK_BYTES)
    return _by_algorithm(algorithm, tensor, group, most)


def ring_reduce_scatter(tensor: Tensor, group: Group = None) -> Tensor:
    """This rank's rows of the sum, partial in, sharded out: byhand.collectives has the ring.

    >>> launch(lambda rank, _: ring_reduce_scatter((rank + 1) * torch.arange(3)), 3).results
    [tensor([0]), tensor([6]), tensor([12])]
    """
    return collectives.reduce_scatter(sendable(tensor, group), group).to(tensor.device)


def ring_all_gather(shard: Tensor, group: Group = None, *, num_rows: int | None = None) -> Tensor:
    """Every rank's rows, replicated: byhand.collectives has the ring, and says what num_rows is.

    >>> launch(lambda rank, world_size: ring_all_gather(torch.tensor([rank])).tolist(), 3).results
    [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    whole = collectives.all_gather(sendable(shard, group), group, num_rows)
    return whole.to(shard.device)


def _by_algorithm(
    algorithm: Algorithm, tensor: Tensor, group: Group, most_blocks: int = MOST_BLOCKS
) -> Tensor:
    total = sendable(tensor, group).clone(memory_format=torch.contiguous_format).view(-1)
    blocks = num_blocks(total, most_blocks)
    run_rounds(algorithm, total, dist.get_process_group_ranks(group), group, blocks)
    return total.view(tensor.shape).to(tensor.device)
