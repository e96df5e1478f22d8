"""What DistributedDataParallel adds to any nn.Module: hooks that send gradients during backward.

Autograd calls a hook when a parameter's gradient is final. The hook counts its bucket down, and
starts the bucket's all-reduce at zero. Gradients are copied into a bucket and out of it, S bytes
more of memory; DDP's can be views of it. n ranks, S bytes of parameters.
Source: Li et al. 2020, arXiv:2006.15704 (PyTorch Distributed), section 3.2.3 and algorithm 1.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn

from byhand.data_parallel.replicas import assign_buckets, broadcast_parameters
from byhand.model.shards import copy_back


class Bucket:
    """Parameters whose gradients travel together."""

    flat: Tensor  # from when it has left: the gradients, and what is waited for
    pending: dist.Work

    def __init__(self, parameters: list[nn.Parameter]):
        self.parameters, self.missing = parameters, len(parameters)


class GradientHooks:
    """Sums a module's gradients over ranks while autograd's backward goes on."""

    def __init__(
        self,
        module: nn.Module,
        bucket_bytes: int = 25 << 20,
        group: dist.ProcessGroup | None = None,
    ):
        """Take over rank 0's parameters and buffers, and hang a hook on every parameter."""
        self.group, self.next = group, 0
        parameters = [p for p in module.parameters() if p.requires_grad]
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                broadcast_parameters([tensor], group=group)
        numbers = assign_buckets([p.nbytes for p in parameters], bucket_bytes)
        self.buckets = [Bucket([parameters[i] for i in bucket]) for bucket in numbers]
        for bucket in self.buckets:
            for parameter in bucket.parameters:
                parameter.register_post_accumulate_grad_hook(partial(self.count_down, bucket))

    def count_down(self, bucket: Bucket, parameter: Tensor) -> None:
        """A gradient is final. Start every bucket that is now full, in one order on all ranks."""
        if bucket.missing == 0:
            raise RuntimeError("a second backward before finish(): this bucket has left already")
        bucket.missing -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            full = self.buckets[self.next]
            full.flat = torch.cat([p.grad.flatten() for p in full.parameters])
            full.pending = dist.all_reduce(full.flat, group=self.group, async_op=True)
            self.next += 1

    def finish(self) -> None:
        """After backward: wait for the sums, and put them into the gradients.

        Raises:
            RuntimeError: a parameter had no gradient, so its bucket never left.
        """
        left, missing = self.next, [bucket.missing for bucket in self.buckets]
        self.next = 0  # the next backward begins anew, whether this one was whole or not
        for bucket in self.buckets:
            bucket.missing = len(bucket.parameters)
        if left < len(self.buckets):
            raise RuntimeError(
                f"bucket {left} of {len(self.buckets)} never left: {missing[left]} of its "
                "parameters had no gradient"
            )
        for bucket in self.buckets:
            bucket.pending.wait()
            copy_back(bucket.flat, [parameter.grad for parameter in bucket.parameters])
