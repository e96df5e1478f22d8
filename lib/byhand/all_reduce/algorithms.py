"""All-reduce by hand: seven algorithms, one engine, nothing but send and receive.

Each takes `tensor`, partial, any shape, and returns its reduction over the ranks of `group`
(None: all), replicated, in a new tensor or in `out`; the caller's tensor is never changed. All
ranks return the same bits. `op` is SUM, AVG, PRODUCT, MIN, MAX, or, on whole numbers, BAND, BOR or
BXOR. With async_op=True the result is that of `.wait()`: what needs nothing from other ranks is
sent at once, the rest while waiting; until then `tensor` must not change.

Rounds and bytes sent are those of the table in byhand.all_reduce.plans. Large tensors go in
blocks, so that the addition of one and the transfer of the next happen at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.all_reduce import plans, trees
from byhand.all_reduce.plans import Plan, cut
from byhand.all_reduce.programs import block_spans, piece_spans, program
from byhand.all_reduce.running import Group, Pending, Pipeline, combination, run_rounds

Op = dist.ReduceOp
Result = Tensor | Pending

MESSAGE_BYTES = 4 << 20  # a large tensor's message in a plan without waves: each costs 0.2 ms here
WAVE_BYTES = 1 << 19  # a block in a plan with waves: the first and the last leave links idle
MOST_BLOCKS = 64
_calls: WeakKeyDictionary[dist.ProcessGroup, count] = WeakKeyDictionary()


def ring_all_reduce(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False, *, out=None
) -> Result:
    """A ring reduce-scatter, then a ring all-gather: 2(n-1) rounds, 2(n-1)/n · S bytes."""
    return _all_reduce(plans.ring, (), tensor, group, op, async_op, out)


def double_ring_all_reduce(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False, *, out=None
) -> Result:
    """Half the tensor each way round: the bytes of one ring, half of them per direction."""
    return _all_reduce(plans.double_ring, (), tensor, group, op, async_op, out)


def tree_all_reduce(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False, *, out=None
) -> Result:
    """Up a binary tree and down again: 2⌊log₂ n⌋ rounds, S bytes to each neighbour."""
    return _all_reduce(trees.tree, (), tensor, group, op, async_op, out)


def double_tree_all_reduce(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False, *, out=None
) -> Result:
    """Half the tensor in each of two trees, of which a rank is a leaf in one at least."""
    return _all_reduce(trees.double_tree, (), tensor, group, op, async_op, out)


def recursive_doubling_all_reduce(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False, *, out=None
) -> Result:
    """Whole tensors between ranks at distance 1, 2, 4, …: log₂ n rounds, log₂ n · S bytes."""
    return _all_reduce(trees.recursive_doubling, (), tensor, group, op, async_op, out)


def halving_doubling_all_reduce(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False, *, out=None
) -> Result:
    """The ring's bytes in a tree's rounds, where n is a power of two: 2 log₂ n rounds."""
    return _all_reduce(trees.halving_doubling, (), tensor, group, op, async_op, out)


def hierarchical_all_reduce(
    tensor: Tensor,
    group: Group = None,
    op: Op = Op.SUM,
    async_op: bool = False,
    *,
    ranks_per_host: int,
    out: Tensor | None = None,
) -> Result:
    """Inside each host, across hosts, inside again; rank r is on host r // ranks_per_host.

    Each of a host's ranks takes its shard across, so a host sends 2(H-1)/H · S bytes to others.

    Raises:
        ValueError: the ranks do not fill their hosts.
    """
    return _all_reduce(plans.hierarchical, (ranks_per_host,), tensor, group, op, async_op, out)


def ring_reduce_scatter(
    tensor: Tensor, group: Group = None, op: Op = Op.SUM, async_op: bool = False
) -> Result:
    """This rank's rows of the reduction: partial in, sharded out. n-1 rounds, (n-1)/n · S bytes.

    Rows are dimension 0, cut as torch.tensor_split cuts: the first ranks may have one row more.
    """
    rank, world_size = _place(group)
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions has no rows to share out: reshape it to (1,)")
    combine = combination(op, tensor.dtype)
    rows, bounds = _rows(tensor, len(tensor), world_size)
    own, shape = slice(*bounds[rank : rank + 2]), (rows[rank + 1] - rows[rank], *tensor.shape[1:])
    source = _flat(tensor, group)
    total = torch.empty_like(source)
    steps = plans.ring_reduce_scatter, bounds, ()
    run = _begin(_shards_program, steps, source, total, combine, group)

    def finish() -> Tensor:
        run()
        return _averaged(total[own].clone(), op, world_size).view(shape).to(tensor.device)

    return _result(finish, async_op)


def ring_all_gather(
    shard: Tensor, group: Group = None, async_op: bool = False, *, num_rows: int | None = None
) -> Result:
    """Every rank's rows, in rank order, replicated: n-1 rounds, (n-1)/n · S bytes; S: the whole.

    `num_rows`, n · len(shard) unless given, is the number of rows of the whole, cut as above.

    Raises:
        ValueError: this rank's rows are not its share of num_rows.
    """
    rank, world_size = _place(group)
    if shard.dim() == 0:
        raise ValueError("a shard needs rows: reshape a tensor without dimensions to (1,)")
    num_rows = len(shard) * world_size if num_rows is None else num_rows
    rows, bounds = _rows(shard, num_rows, world_size)
    share = rows[rank + 1] - rows[rank]
    if len(shard) != share:
        whose = f"its share of {num_rows} rows over {world_size} ranks is {share}"
        raise ValueError(f"rank {rank} holds {len(shard)} rows, but {whose}")
    source = _flat(shard, group)
    whole = source.new_empty(bounds[-1])
    whole[bounds[rank] : bounds[rank + 1]] = source
    steps = plans.ring_all_gather, bounds, (rank,)
    run = _begin(_shards_program, steps, whole, whole, None, group)

    def finish() -> Tensor:
        run()
        return whole.view(num_rows, *shard.shape[1:]).to(shard.device)

    return _result(finish, async_op)


def num_blocks(plan: Plan, num_bytes: int) -> int:
    """In how many blocks a tensor goes through `plan`."""
    block_bytes = WAVE_BYTES if plan.in_waves else plan.num_pieces * MESSAGE_BYTES
    return max(1, min(MOST_BLOCKS, num_bytes // block_bytes))


def _all_reduce(
    make: Callable, sizes: tuple, tensor: Tensor, group: Group, op: Op, async_op: bool, out
) -> Result:
    """The all-reduce whose plan is make(world_size, *sizes)."""
    _, world_size = _place(group)
    combine = combination(op, tensor.dtype)
    source = _flat(tensor, group)
    result = _room(tensor, out) if source.device == tensor.device else torch.empty_like(source)
    run = _begin(_blocks_program, (make, sizes), source, result, combine, group)

    def finish() -> Tensor:
        run()
        total = _averaged(result, op, world_size).view(tensor.shape)
        if total.device != tensor.device:
            return total.to(tensor.device) if out is None else out.copy_(total)
        return total if out is None else out

    return _result(finish, async_op)


def _begin(
    make_program: Callable,
    steps: tuple,
    source: Tensor,
    result: Tensor,
    combine: Callable | None,
    group: Group,
) -> Callable[[], None]:
    """Send what can be sent at once; what is returned does the rest."""
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    if world_size == 1:
        return lambda: result.copy_(source)
    plan, spans, steps = make_program(*steps, world_size, rank, len(source), source.itemsize)
    if source.is_cuda:  # NCCL orders messages by stream and knows no tags: round by round
        result.copy_(source)
        return lambda: run_rounds(plan, rank, spans, result, combine, group)
    calls = _calls.setdefault(group or dist.group.WORLD, count(1))
    return Pipeline(steps, source, result, combine, group, next(calls) % 4096 << 18).run


@lru_cache(maxsize=256)
def _blocks_program(make, sizes, world_size, rank, num_elements, itemsize):
    """A plan over equal pieces: the plan, its pieces in one block, this rank's program."""
    plan = make(world_size, *sizes)
    blocks = num_blocks(plan, num_elements * itemsize)
    spans = block_spans(num_elements, plan.num_pieces, blocks)
    return plan, block_spans(num_elements, plan.num_pieces, 1), program(plan, rank, spans)


@lru_cache(maxsize=256)
def _shards_program(make, bounds, held, world_size, rank, num_elements, itemsize):
    """The same over the ranks' shards, which begin at `bounds`."""
    plan = make(world_size)
    blocks = num_blocks(plan, num_elements * itemsize)
    return plan, piece_spans(bounds, 1), program(plan, rank, piece_spans(bounds, blocks), held)


def _place(group: Group) -> tuple[int, int]:
    """This rank's number within `group`, and the group's size."""
    if not dist.is_initialized():
        raise ValueError("there are no ranks yet: call this in a function that `launch` runs")
    if dist.get_rank(group) < 0:
        raise ValueError(f"rank {dist.get_rank()} is not in this group, so it must not call it")
    return dist.get_rank(group), dist.get_world_size(group)


def _flat(tensor: Tensor, group: Group) -> Tensor:
    """The elements in one row, where the group's backend can send them: gloo from the host."""
    flat = tensor.detach().contiguous().view(-1)
    return flat.cpu() if flat.is_cuda and "nccl" not in dist.get_backend(group) else flat


def _room(tensor: Tensor, out: Tensor | None) -> Tensor:
    """`out` in one row, or a new tensor."""
    if out is None:
        return tensor.new_empty(tensor.numel())
    if out.shape != tensor.shape or out.dtype != tensor.dtype or not out.is_contiguous():
        have, want = (f"{list(t.shape)} {t.dtype}" for t in (out, tensor))
        raise ValueError(f"out is {have}, but must be a contiguous {want}")
    if out.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
        raise ValueError("out shares memory with the tensor to reduce, which must not change")
    return out.view(-1)


def _rows(tensor: Tensor, num_rows: int, world_size: int) -> tuple[list[int], tuple[int, ...]]:
    """Where each rank's rows begin, in rows and in elements."""
    rows = cut(num_rows, world_size)
    return rows, tuple(row * math.prod(tensor.shape[1:]) for row in rows)


def _averaged(total: Tensor, op: Op, world_size: int) -> Tensor:
    return total.div_(world_size) if op == Op.AVG else total


def _result(finish: Callable[[], Tensor], async_op: bool) -> Result:
    pending = Pending(finish)
    return pending if async_op else pending.wait()
