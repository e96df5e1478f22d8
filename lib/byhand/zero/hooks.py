"""Stage 3 for any nn.Module, with autograd: what torch's fully_shard (FSDP2) does, by hooks.

    before a unit's forward     gather its weights, and begin to gather the next unit's
    after it                    free them
    before its backward         gather them again, and begin with the unit before
    its gradients are final     reduce-scatter them, and free the weights

Autograd keeps the weights that backward will need, so letting go of them frees nothing. The trick
of FSDP: the tensors stay, and their *storage* is resized to 0 bytes, and back.

Simplified: every parameter has a gradient in every backward; no activation checkpointing (its
second forward would free what backward needs). n ranks, S bytes: 3 S (n-1)/n sent a step.
Source: Zhao et al. 2023, arXiv:2304.11277 (PyTorch FSDP), sections 3.2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from byhand.collectives.with_torch import ALL_GATHER, REDUCE_SCATTER
from byhand.data_parallel.replicas import broadcast_parameters
from byhand.model.shards import Group, views
from byhand.zero.flat import flatten


class Unit:
    """Parameters that are gathered and freed together; `shard` is what an optimizer changes."""

    def __init__(self, parameters: list[nn.Parameter], group: Group, sending: list):
        self.parameters, self.group, self.sending = parameters, group, sending
        self.rank, self.num_ranks = dist.get_rank(group), dist.get_world_size(group)
        whole = flatten([parameter.detach() for parameter in parameters], self.num_ranks)
        dist.broadcast(whole, group=group, group_src=0)
        self.shard = nn.Parameter(whole.chunk(self.num_ranks)[self.rank].clone())
        shapes = [parameter.shape for parameter in parameters]
        for parameter, view in zip(parameters, views(whole, shapes), strict=True):
            parameter.data = view
            parameter.register_post_accumulate_grad_hook(self.count_down)
        self.whole, self.num_bytes = whole, whole.nbytes
        self.missing = len(parameters)
        self.free()

    def gather(self) -> None:
        """Begin to fill the storage again, unless it is full."""
        if self.whole.untyped_storage().nbytes() == 0:
            self.whole.untyped_storage().resize_(self.num_bytes)
            shard = self.shard.detach()
            self.arriving = ALL_GATHER(self.whole, shard, self.group, async_op=True)

    def free(self) -> None:
        """Give the storage back; every tensor that looks at it stays as it is."""
        self.whole.untyped_storage().resize_(0)

    def count_down(self, _: Tensor) -> None:
        """A gradient is final. After the last: free the weights, and send all gradients."""
        self.missing -= 1
        if self.missing == 0:
            self.free()
            settle(self.sending)
            grad = flatten([p.grad for p in self.parameters], self.num_ranks)
            for parameter in self.parameters:
                parameter.grad = None
            mine = grad.chunk(self.num_ranks)[self.rank]
            work = REDUCE_SCATTER(mine, grad, group=self.group, async_op=True)
            self.sending.append((self, work, mine))
            self.missing = len(self.parameters)


def settle(sending: list) -> None:
    """Wait for the sums that are under way, and add them to their shards' gradients."""
    while sending:
        unit, work, mine = sending.pop()
        work.wait()
        unit.shard.grad = mine + (0 if unit.shard.grad is None else unit.shard.grad)


class ShardedModule:
    """A module whose `parts` are gathered one by one, and what is in no part before them all."""

    def __init__(self, module: nn.Module, parts: Iterable[nn.Module], group: Group = None):
        """Take over rank 0's parameters and buffers, keep shards, and hang hooks on the parts.

        Frozen parameters and buffers stay whole.

        parts: submodules in the order in which they run; each gives one tensor, none shares a
        parameter with another.
        """
        self.units, self.sending, taken = [], [], set()
        for part in (*parts, module):
            if mine := [p for p in part.parameters() if p.requires_grad and p not in taken]:
                number = len(self.units)
                part.register_forward_pre_hook(partial(self.use, number, number + 1))
                part.register_forward_hook(partial(self.release, number))
                self.units.append(Unit(mine, group, self.sending))
                taken.update(mine)
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor not in taken:
                broadcast_parameters([tensor.detach()], group=group)

    def use(self, number: int, following: int, *_: Any) -> None:
        """Make a unit whole, and begin with the one that will be used next."""
        self.units[number].gather()
        self.units[number].arriving.wait()
        if 0 <= following < len(self.units):
            self.units[following].gather()

    def release(self, number: int, part: nn.Module, args: Any, y: Tensor) -> None:
        """Free a unit, and use it again when y's gradient is there: backward comes to it then."""
        self.units[number].free()
        if y.requires_grad:
            y.register_hook(partial(self.use, number, number - 1))

    def parameters(self) -> list[nn.Parameter]:
        """The shards: what to give to an optimizer."""
        return [unit.shard for unit in self.units]

    def finish(self) -> None:
        """After backward: wait for the last sum. RuntimeError: a unit's gradient never left."""
        settle(self.sending)
        for number, unit in enumerate(self.units):
            if unit.shard.grad is None:
                raise RuntimeError(f"unit {number} had no gradient for {unit.missing} parameters")
