"""The eight collectives, built from nothing but send and recv.

Each moves the fewest messages and bytes that its result allows; each docstring says how many.

    broadcast  reduce            a chain: every rank passes S bytes on to the next
    scatter    gather            the root deals out, or takes in, one shard per rank
    all_gather  reduce_scatter   a ring: n-1 rounds, each rank sends one shard per round
    all_reduce                   reduce_scatter, then all_gather
    all_to_all                   n-1 rounds: in round k a shard to the rank k places on

Terms: n ranks in `group` (None: all of them); S bytes in the whole tensor; `root` is a rank within
`group`. A *shard* is a rank's share of the rows (dimension 0), cut as `torch.tensor_split` cuts:
the first `num_rows mod n` ranks hold one row more. Empty shards are not sent.
Every result is a new tensor and no argument is changed. Reductions are sums.
Source: Chan et al. 2007, Collective communication: theory, practice, and experience.
"""

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.words import counted

Group = dist.ProcessGroup | None


def broadcast(tensor: Tensor, root: int = 0, group: Group = None) -> Tensor:
    """The root's `tensor`, replicated. On other ranks `tensor` gives the shape and dtype only.

    Sends n-1 messages, (n-1)·S bytes: S by every rank but the last of the chain
    root → root+1 → … → root-1.

    >>> launch(lambda rank, world_size: broadcast(torch.tensor([rank]), root=2).tolist(), 4).results
    [[2], [2], [2], [2]]
    """
    rank, world_size = _place(group, root)
    steps_from_root = (rank - root) % world_size
    result = tensor.clone(memory_format=torch.contiguous_format)
    if steps_from_root > 0:
        _recv(result, rank - 1, group)
    if steps_from_root < world_size - 1:
        _send(result, rank + 1, group)
    return result


def reduce(tensor: Tensor, root: int = 0, group: Group = None) -> Tensor | None:
    """The sum of every rank's `tensor` on the root; None elsewhere.

    Sends n-1 messages, (n-1)·S bytes: S by every rank but the root, along the chain
    root+1 → root+2 → … → root, each rank adding its own term to what arrives.

    >>> launch(lambda rank, world_size: reduce(torch.tensor(rank + 1)), 3).results
    [tensor(6), None, None]
    """
    rank, world_size = _place(group, root)
    steps_to_root = (root - rank) % world_size
    total = tensor.clone(memory_format=torch.contiguous_format)
    if steps_to_root < world_size - 1:
        _recv(total, rank - 1, group)
        total += tensor
    if steps_to_root == 0:
        return total
    _send(total, rank + 1, group)
    return None


def scatter(tensor: Tensor, root: int = 0, group: Group = None) -> Tensor:
    """This rank's shard of the root's `tensor`. On other ranks only its shape and dtype count.

    Sends n-1 messages, S·(n-1)/n bytes, all by the root.

    >>> launch(lambda rank, world_size: scatter(torch.arange(6) + 10 * rank).tolist(), 3).results
    [[0, 1], [2, 3], [4, 5]]
    """
    rank, world_size = _place(group, root)
    shards = _shards(tensor, world_size)
    result = shards[rank].clone()
    if rank != root:
        _recv(result, root, group)
        return result
    for other in _others(rank, world_size):
        _send(shards[other], other, group)
    return result


def gather(
    shard: Tensor, root: int = 0, group: Group = None, num_rows: int | None = None
) -> Tensor | None:
    """Every rank's `shard`, in rank order, as one tensor of `num_rows` rows on the root; else None.

    Sends n-1 messages, S·(n-1)/n bytes: one shard by every rank but the root.
    `num_rows` is n · len(shard) unless given: give it when the ranks' shards differ in length.

    >>> launch(lambda rank, world_size: gather(torch.tensor([rank]), root=1), 3).results
    [None, tensor([0, 1, 2]), None]
    """
    rank, world_size = _place(group, root)
    whole, shards = _whole(shard, rank, world_size, num_rows)
    if rank != root:
        _send(shards[rank], root, group)
        return None
    for other in _others(rank, world_size):
        _recv(shards[other], other, group)
    return whole


def all_gather(shard: Tensor, group: Group = None, num_rows: int | None = None) -> Tensor:
    """Every rank's `shard` (sharded), in rank order, as one tensor of `num_rows` rows (replicated).

    Sends n-1 messages and S·(n-1)/n bytes per rank: in each round a rank passes on
    the shard that arrived in the round before. `num_rows` as in `gather`.

    >>> launch(lambda rank, _: all_gather(torch.tensor([rank, 10 * rank])).tolist(), 2).results
    [[0, 0, 1, 10], [0, 0, 1, 10]]
    """
    rank, world_size = _place(group)
    whole, shards = _whole(shard, rank, world_size, num_rows)
    for step in range(world_size - 1):
        outgoing, incoming = (rank - step) % world_size, (rank - step - 1) % world_size
        _exchange(shards[outgoing], rank + 1, shards[incoming], rank - 1, group)
    return whole


def reduce_scatter(tensor: Tensor, group: Group = None) -> Tensor:
    """This rank's shard of the sum of every rank's `tensor`: partial in, sharded out.

    Sends n-1 messages and S·(n-1)/n bytes per rank: the sum of shard j starts on rank j+1, and
    every rank adds its own term as the sum passes, until it ends on rank j.

    >>> launch(lambda rank, _: reduce_scatter((rank + 1) * torch.arange(4)).tolist(), 2).results
    [[0, 3], [6, 9]]
    """
    rank, world_size = _place(group)
    shards = _shards(tensor, world_size)
    total = shards[(rank - 1) % world_size].clone()
    for step in range(1, world_size):
        own = shards[(rank - step - 1) % world_size]
        incoming = torch.empty_like(own)
        _exchange(total, rank + 1, incoming, rank - 1, group)
        total = incoming + own
    return total


def all_reduce(tensor: Tensor, group: Group = None) -> Tensor:
    """The sum of every rank's `tensor`: partial in, replicated out. Any shape.

    Sends 2(n-1) messages and 2S·(n-1)/n bytes per rank: a reduce_scatter, then an all_gather.

    >>> run = launch(lambda rank, world_size: all_reduce(torch.ones(6)).tolist(), 3)
    >>> run.results[0]
    [3.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    >>> run.ledger.count("send", rank=0), run.ledger.sent_bytes("send", rank=0)
    (4, 32)
    """
    flat = tensor.reshape(-1)
    shard = reduce_scatter(flat, group)
    return all_gather(shard, group, num_rows=flat.numel()).reshape(tensor.shape)


def all_to_all(tensor: Tensor, group: Group = None) -> Tensor:
    """Every rank's shard number `rank`, in rank order: sharded in, sharded out, the other way.

    A transposition: what rank r held for rank s, rank s now holds from rank r. The result has n
    times as many rows as this rank's shard. Sends n-1 messages and S·(n-1)/n bytes per rank.

    >>> launch(lambda rank, world_size: all_to_all(10 * rank + torch.arange(3)).tolist(), 3).results
    [[0, 10, 20], [1, 11, 21], [2, 12, 22]]
    """
    rank, world_size = _place(group)
    shards = _shards(tensor, world_size)
    result = tensor.new_empty(world_size * len(shards[rank]), *tensor.shape[1:])
    arrived = result.tensor_split(world_size)
    arrived[rank].copy_(shards[rank])
    for step in range(1, world_size):
        to, source = (rank + step) % world_size, (rank - step) % world_size
        _exchange(shards[to], to, arrived[source], source, group)
    return result


def _place(group: Group, root: int = 0) -> tuple[int, int]:
    """This rank's number within `group`, and the group's size."""
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise ValueError(f"rank {dist.get_rank()} is not in this group, so it must not call it")
    if not 0 <= root < world_size:
        raise ValueError(f"root {root} is not a rank of this group: they are 0 to {world_size - 1}")
    return rank, world_size


def _peer(group_rank: int, group: Group) -> int:
    """The global rank, which send and recv ask for, of a rank of `group` (modulo its size)."""
    group_rank %= dist.get_world_size(group)
    return dist.get_process_group_ranks(group)[group_rank]


def _others(rank: int, world_size: int) -> list[int]:
    """The other ranks, the next one first."""
    return [(rank + step) % world_size for step in range(1, world_size)]


def _shards(tensor: Tensor, world_size: int) -> tuple[Tensor, ...]:
    """One contiguous piece per rank, cut along dimension 0."""
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions has no rows to share out: reshape it to (1,)")
    return tensor.contiguous().tensor_split(world_size)


def _whole(
    shard: Tensor, rank: int, world_size: int, num_rows: int | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """An empty tensor of `num_rows` rows with `shard` in its place, and its shards as views."""
    if shard.dim() == 0:
        raise ValueError("a shard needs rows: reshape a tensor without dimensions to (1,)")
    num_rows = len(shard) * world_size if num_rows is None else num_rows
    whole = shard.new_empty(num_rows, *shard.shape[1:])
    shards = whole.tensor_split(world_size)
    if len(shards[rank]) != len(shard):
        share = f"its share of {num_rows} rows over {world_size} ranks is {len(shards[rank])}"
        raise ValueError(f"rank {rank} holds {counted(len(shard), 'row')}, but {share}")
    shards[rank].copy_(shard)
    return whole, shards


def _send(tensor: Tensor, group_rank: int, group: Group) -> None:
    if tensor.numel() > 0:
        dist.send(tensor, _peer(group_rank, group), group)


def _recv(tensor: Tensor, group_rank: int, group: Group) -> None:
    if tensor.numel() > 0:
        dist.recv(tensor, _peer(group_rank, group), group)


def _exchange(outgoing: Tensor, to: int, incoming: Tensor, source: int, group: Group) -> None:
    """One round: send to one rank and receive from another, both at once.

    A plain send before a plain recv would hang: every rank would wait in send for a receiver. The
    receive begins first: gloo tells the sender that it is ready, and between two ranks that send
    each other something, that word would queue behind the bytes (and they would take turns).
    """
    ways = [(dist.irecv, incoming, source), (dist.isend, outgoing, to)]
    calls = [dist.P2POp(op, t, _peer(peer, group), group) for op, t, peer in ways if t.numel() > 0]
    if calls:
        for pending in dist.batch_isend_irecv(calls):
            pending.wait()
