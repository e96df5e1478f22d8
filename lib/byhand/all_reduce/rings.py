"""The ring all-reduce: the function that lecture 03 prints, and the one that runs.

`shards` are flat tensors, one for each rank of the ring, and the same sizes on every rank;
`run_ring` and the halves change them in place. `ranks` are global ranks in the order of the ring,
the caller's among them; `group` is what the messages go through, None for all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import torch
import torch.distributed as dist
from torch import Tensor

Group = dist.ProcessGroup | None
BLOCK_BYTES, MOST_BLOCKS = 1 << 18, 4  # more messages would cost more than they hide


def ring_all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """The sum of all ranks' tensors, in a new tensor: 2(n-1) rounds, 2(n-1)/n · S bytes a rank.

    The blocks of a large tensor take turns: while one is added, the others travel.

    >>> run = launch(lambda rank, world_size: ring_all_reduce(torch.ones(1000)).sum().item(), 4)
    >>> run.results
    [4000.0, 4000.0, 4000.0, 4000.0]
    >>> [run.ledger.sent_bytes("send", rank) for rank in range(4)]
    [6000, 6000, 6000, 6000]
    """
    ranks = dist.get_process_group_ranks(group)
    total = sendable(tensor, group).clone(memory_format=torch.contiguous_format)
    blocks = total.view(-1).tensor_split(num_blocks(total))
    rounds = range(1, 2 * len(ranks) - 1)
    rings = [run_ring(block.tensor_split(len(ranks)), ranks, rounds, group) for block in blocks]
    for _ in zip_longest(*rings):
        pass  # each has ended a round and begun its next
    return total.to(tensor.device)


def run_ring(
    shards: Sequence[Tensor], ranks: Sequence[int], rounds: range, group: Group = None
) -> Iterator[None]:
    """Rounds 1 to n-1 are a reduce-scatter, n to 2n-2 an all-gather; a pause while they travel.

    The sum of shard j starts on the rank after rank number j, and ends on that. Each round sends
    one message to the next rank of the ring, and to no other. The receive begins first: gloo's word
    that a rank is ready would else queue behind its bytes, and two ranks would take turns.
    """
    n, me = len(ranks), ranks.index(dist.get_rank())
    for number in rounds:
        outgoing, own = shards[(me - number) % n], shards[(me - number - 1) % n]
        arrived = torch.empty_like(own) if number < n else own
        sending = dist.P2POp(dist.isend, outgoing, ranks[(me + 1) % n], group)
        receiving = dist.P2POp(dist.irecv, arrived, ranks[(me - 1) % n], group)
        messages = dist.batch_isend_irecv([receiving, sending])
        yield
        for message in messages:
            message.wait()
        if number < n:
            own += arrived


def reduce_scatter_around(shards: Sequence[Tensor], ranks: Sequence[int]) -> None:
    """Shard j of rank number j becomes the sum of all ranks' shard j; others are left partial.

    Raises:
        ValueError: the rank that calls is not in the ring, or there are more or fewer shards.
    """
    _check_ring(shards, ranks)
    for _ in run_ring(shards, ranks, range(1, len(ranks))):
        pass


def all_gather_around(shards: Sequence[Tensor], ranks: Sequence[int]) -> None:
    """Every shard j becomes that of rank number j of the ring: each passes on what came last.

    Raises:
        ValueError: the rank that calls is not in the ring, or there are more or fewer shards.
    """
    _check_ring(shards, ranks)
    for _ in run_ring(shards, ranks, range(len(ranks), 2 * len(ranks) - 1)):
        pass


def _check_ring(shards: Sequence[Tensor], ranks: Sequence[int]) -> None:
    """Is there a place for the rank that calls, and a shard for each?"""
    if (rank := dist.get_rank()) not in ranks:
        raise ValueError(f"rank {rank} calls, and the ring's ranks are {list(ranks)}, without it")
    if len(shards) != len(ranks):
        raise ValueError(f"{len(shards)} shards for {len(ranks)} ranks: a ring needs one for each")


def num_blocks(tensor: Tensor, most: int = MOST_BLOCKS) -> int:
    """In how many blocks a tensor goes."""
    return max(1, min(most, tensor.nbytes // BLOCK_BYTES))


def sendable(tensor: Tensor, group: Group) -> Tensor:
    """The values where the group's backend can send them: NCCL from the GPU, gloo from the host."""
    values = tensor.detach()
    return values if "nccl" in dist.get_backend(group) else values.cpu()
