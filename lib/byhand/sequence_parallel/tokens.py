"""Where *sharded by token* and *sharded by feature* meet: all-gather in, reduce-scatter out.

    gather           tokens of all ranks, side by side. Its gradient is reduce-scattered
    reduce_scatter   the sum over ranks, of this rank's tokens. Its gradient is all-gathered
    start_gather, start_reduce_scatter   the same, while the rank goes on computing

An all-reduce is a reduce-scatter and an all-gather, one after the other: tensor parallelism makes
both at once, and sequence parallelism computes in between, on the tokens of each rank alone.

Shapes: x [..., S, D], S positions and D features, n ranks in `group` (None: all of them).
Simplified: with several sequences [B, S, D] the shards are copied into place, which Megatron spares
by keeping its activations as [S, B, D].
Source: Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2 (its operators g and ḡ).
"""

from __future__ import annotations

from collections.abc import Callable

import torch.distributed as dist
from torch import Tensor

from byhand.collectives.with_torch import ALL_GATHER, REDUCE_SCATTER
from byhand.model.shards import Group, equal_shards

Finish = Callable[[], Tensor]  # waits, and gives the result


def gather(x: Tensor, group: Group = None) -> Tensor:
    """x [..., S/n, D] sharded by token -> [..., S, D] replicated, in rank order.

    Sends (n-1)/n of the result's bytes per rank: one all-gather.

    >>> launch(lambda rank, _: gather(torch.full((1, 1, 2), rank)).tolist(), 2).results[0]
    [[[0, 0], [1, 1]]]
    """
    return start_gather(x, group)()


def reduce_scatter(x: Tensor, group: Group = None) -> Tensor:
    """x [..., S, D] partial -> the sum [..., S/n, D], sharded by token.

    Sends (n-1)/n of x's bytes per rank: one reduce-scatter.

    Raises:
        ValueError: the tokens are not a multiple of the group's size.

    >>> launch(lambda rank, _: reduce_scatter(torch.ones(1, 4, 2)).tolist(), 2).results[0]
    [[[2.0, 2.0], [2.0, 2.0]]]
    """
    return start_reduce_scatter(x, group)()


def start_gather(x: Tensor, group: Group = None) -> Finish:
    """As `gather`, in two steps: the all-gather is under way until what this returns is called."""
    whole = x.new_empty(dist.get_world_size(group), *x.shape)
    pending = ALL_GATHER(whole.flatten(0, 1), x.contiguous(), group=group, async_op=True)

    def finish() -> Tensor:
        pending.wait()
        return whole.movedim(0, -3).flatten(-3, -2)

    return finish


def start_reduce_scatter(x: Tensor, group: Group = None) -> Finish:
    """As `reduce_scatter`, in two steps. x may not change in between."""
    by_rank = x.unflatten(-2, (dist.get_world_size(group), _tokens_of_one(x, group)))
    by_rank = by_rank.movedim(-3, 0).contiguous()  # [n, ..., S/n, D]
    mine = by_rank.new_empty(by_rank.shape[1:])
    pending = REDUCE_SCATTER(mine, by_rank.flatten(0, 1), group=group, async_op=True)

    def finish() -> Tensor:
        pending.wait()
        return mine

    return finish


def _tokens_of_one(x: Tensor, group: Group) -> int:
    advice = ", so pad the sequences (padding has no loss, hence no gradient)"
    return equal_shards(x.shape[-2], "token", group, advice)
