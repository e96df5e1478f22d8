"""Data parallelism: every rank holds the whole model, and computes a share of every batch.

The ranks begin with equal weights (a broadcast) and add equal gradients (an all-reduce), so their
weights stay equal, and equal to those of one device that saw the whole batch.

Losses are means over the *global* batch, so the ranks' gradients are summed and nothing is
divided: right also where ranks have different numbers of rows. `DataParallel` sends gradients in
buckets while backward goes on. n ranks, S bytes of parameters.
Source: Li et al. 2020, arXiv:2006.15704 (PyTorch Distributed), sections 3.2 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.data_parallel.compression import Sum
from byhand.model.mlp import MLP, softmax_cross_entropy
from byhand.model.shards import copy_back, shard, views


def broadcast_parameters(
    parameters: Iterable[Tensor], root: int = 0, group: dist.ProcessGroup | None = None
) -> None:
    """Set every rank's parameters to those of `root`, a rank within `group`, in place.

    All travel as one flat tensor: one broadcast of S bytes.

    >>> def begin(rank, world_size):
    ...     weight = torch.full((2,), float(rank))
    ...     broadcast_parameters([weight])
    ...     return weight.tolist()
    >>> launch(begin, 3).results
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    parameters = list(parameters)  # walked twice; `nn.Module.parameters()` can be walked once
    flat = torch.cat([parameter.flatten() for parameter in parameters])
    dist.broadcast(flat, group=group, group_src=root)
    copy_back(flat, parameters)


def all_reduce_gradients(
    gradients: Iterable[Tensor], group: dist.ProcessGroup | None = None
) -> None:
    """Sum each gradient over the ranks, in place: partial -> replicated. One all-reduce each.

    >>> def average(rank, world_size):
    ...     gradients = [torch.full((2,), float(rank)), torch.ones(1)]
    ...     all_reduce_gradients(gradients)
    ...     return gradients
    >>> run = launch(average, 2)
    >>> run.results[0], run.ledger.count("all_reduce", rank=0)
    ([tensor([1., 1.]), tensor([2.])], 2)
    """
    for gradient in gradients:
        dist.all_reduce(gradient, group=group)


def all_reduce_gradients_flat(
    gradients: Iterable[Tensor], group: dist.ProcessGroup | None = None
) -> None:
    """The same by one all-reduce of them all; costs a second copy of the gradients.

    >>> def total(rank, world_size):
    ...     all_reduce_gradients_flat([torch.full((2,), float(rank)), torch.ones(1)])
    >>> launch(total, 2).ledger.count("all_reduce", rank=0)
    1
    """
    gradients = list(gradients)
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat, group=group)
    copy_back(flat, gradients)


def assign_buckets(layer_bytes: Sequence[int], bucket_bytes: int) -> list[list[int]]:
    """Which layers' gradients share a bucket: lists of layer numbers, the last layer first.

    That is the order in which backward completes them. A bucket holds at most `bucket_bytes`,
    except that a layer is never cut: a larger one has a bucket of its own. Layers of 0 bytes, such
    as activations, are in none.

    Raises:
        ValueError: bucket_bytes is below 1.

    >>> assign_buckets([400, 100, 300, 200], bucket_bytes=500)
    [[3, 2], [1, 0]]
    """
    if bucket_bytes < 1:
        raise ValueError(f"a bucket of {bucket_bytes} bytes can hold nothing: at least 1")
    buckets: list[list[int]] = []
    held = 0
    for layer in reversed(range(len(layer_bytes))):
        if layer_bytes[layer] == 0:
            continue
        if not buckets or held + layer_bytes[layer] > bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(layer)
        held += layer_bytes[layer]
    return buckets


class DataParallel:
    """A replica of a model of layers, whose gradients are summed over ranks during backward.

    >>> from byhand.mlp import MLP
    >>> def step(rank, world_size, pairs):
    ...     model = DataParallel(MLP.from_weights(pairs), bucket_bytes=40)
    ...     y, saved = model.forward(shard(torch.ones(4, 2)))
    ...     model.backward(y, saved)
    ...     return model.gradients()[1].tolist()
    >>> pairs = [(torch.ones(3, 2), torch.zeros(3)), (torch.ones(1, 3), torch.zeros(1))]
    >>> launch(step, 1, (pairs,)).results
    [[24.0, 24.0, 24.0]]
    >>> run = launch(step, 2, (pairs,))
    >>> run.results, run.ledger.count("all_reduce", rank=0)
    ([[24.0, 24.0, 24.0], [24.0, 24.0, 24.0]], 2)
    """

    def __init__(
        self,
        model: MLP,
        group: dist.ProcessGroup | None = None,
        bucket_bytes: int = 4 << 20,
        reducer: Callable[[Tensor], Any] = Sum,
    ):
        """Take over rank 0's parameters (one broadcast), and lay the gradients out in buckets.

        `reducer` makes of each bucket's flat tensor what sums it, as Sum, Float16 and TopK of
        byhand.data_parallel.compression do.

        Raises:
            ValueError: the parameters are not of one dtype on one device.
        """
        self.model, self.group = model, group
        _check_alike(model.parameters())
        broadcast_parameters(model.parameters(), group=group)
        layer_bytes = [sum(p.nbytes for p in layer.parameters()) for layer in model.layers]
        self.buckets = assign_buckets(layer_bytes, bucket_bytes)
        in_order = [model.layers[index] for bucket in self.buckets for index in bucket]
        gradients = [gradient for layer in in_order for gradient in layer.gradients()]
        self.flat = torch.cat([gradient.flatten() for gradient in gradients])
        in_flat = views(self.flat, [gradient.shape for gradient in gradients])
        for layer in in_order:
            layer.keep_gradients_in(in_flat)
        itemsize = self.flat.element_size()
        sizes = [sum(layer_bytes[i] for i in bucket) // itemsize for bucket in self.buckets]
        parts = zip(self.buckets, self.flat.split(sizes), strict=True)
        # A bucket is complete after backward of the last layer in it.
        self.ending_at = {bucket[-1]: reducer(flat) for bucket, flat in parts}
        self._summed = False

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x, this rank's rows -> y and what backward needs. Sends nothing."""
        return self.model.forward(x)

    def backward(self, grad_y: Tensor, saved: list[Any], synchronise: bool = True) -> None:
        """Add this rank's gradients, and leave their sum over all ranks in `gradients()`.

        Each bucket's all-reduce starts when its last gradient is complete, and is waited for when
        backward is through: 2 (n-1)/n · S bytes sent per rank. With synchronise=False nothing is
        sent: for all but the last micro-batch of a step.

        Raises:
            RuntimeError: the gradients are sums over ranks already; they would be summed twice.
        """
        if self._summed:
            raise RuntimeError(
                "these gradients are already summed over the ranks: call zero_gradients() before "
                "the next backward, and synchronise in the last micro-batch of a step only"
            )
        for index in reversed(range(len(self.model.layers))):
            layer = self.model.layers[index]
            if index > 0:
                grad_y = layer.backward(grad_y, saved[index])
            else:
                layer.backward_first(grad_y, saved[index])
            if synchronise and index in self.ending_at:
                self.ending_at[index].start(self.group)
        if synchronise:
            for bucket in self.ending_at.values():
                bucket.finish()
            self._summed = True

    def parameters(self) -> list[Tensor]:
        """The model's; replicated."""
        return self.model.parameters()

    def gradients(self) -> list[Tensor]:
        """The model's, in the same order: partial until a backward that synchronises."""
        return self.model.gradients()

    def zero_gradients(self) -> None:
        """Set every gradient to 0, in place."""
        self.flat.zero_()
        self._summed = False


def batches(num_samples: int, batch_rows: int, epoch: int = 0, seed: int = 0) -> tuple[Tensor, ...]:
    """The sample numbers of each global batch of an epoch, shuffled, equal on all ranks.

    The last batch may be smaller.

    >>> [batch.tolist() for batch in batches(10, 4, epoch=1)]
    [[5, 6, 1, 2], [0, 8, 9, 3], [7, 4]]
    """
    generator = torch.Generator().manual_seed(seed + epoch)
    return torch.randperm(num_samples, generator=generator).split(batch_rows)


def training_step(
    model: DataParallel, optimizer: Any, x: Tensor, labels: Tensor, num_micro_batches: int = 1
) -> Tensor:
    """One step on the global batch x, labels -> this rank's share of its mean loss.

    Every rank is given the whole batch and computes its own rows, in micro-batches. The gradients
    are sent once, with the last of them. The shares of all ranks add up to the loss.

    >>> from byhand.mlp import MLP
    >>> from byhand.model.optimizers import SGD
    >>> def step(rank, world_size):
    ...     model = DataParallel(MLP.from_weights([(torch.zeros(2, 3), torch.zeros(2))]))
    ...     x, labels = torch.ones(4, 3), torch.tensor([0, 1, 0, 1])
    ...     return training_step(model, SGD(model.parameters(), lr=0.1), x, labels).item()
    >>> [f"{share:.4f}" for share in launch(step, 2).results]
    ['0.3466', '0.3466']
    """
    model.zero_gradients()
    rows = shard(x, 0, model.group).tensor_split(num_micro_batches)
    answers = shard(labels, 0, model.group).tensor_split(num_micro_batches)
    loss = x.new_zeros(())
    for number, (part, answer) in enumerate(zip(rows, answers, strict=True), 1):
        logits, saved = model.forward(part)
        share, grad_logits = softmax_cross_entropy(logits, answer, global_batch=len(x))
        model.backward(grad_logits, saved, synchronise=number == num_micro_batches)
        loss += share
    optimizer.step(model.gradients())
    return loss


def evaluate(
    model: Any, x: Tensor, labels: Tensor, group: dist.ProcessGroup | None = None
) -> float:
    """The accuracy on x, labels, which every rank has: the same number as on one device.

    Each rank classifies the rows rank, rank + n, ...; nothing is padded, so no row counts twice.
    What is summed are two whole numbers, right and seen: one all-reduce of 16 bytes.

    >>> from byhand.mlp import Linear
    >>> x, labels = torch.eye(3), torch.tensor([0, 1, 1])
    >>> launch(lambda rank, _: evaluate(Linear(torch.eye(3), torch.zeros(3)), x, labels), 2).results
    [0.6666666666666666, 0.6666666666666666]
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    logits, _ = model.forward(x[rank::world_size])
    answers = labels[rank::world_size]
    right = (logits.argmax(dim=1) == answers).sum()
    counts = torch.stack([right, right.new_tensor(len(answers))])
    dist.all_reduce(counts, group=group)
    return int(counts[0]) / int(counts[1])


def _check_alike(parameters: Sequence[Tensor]) -> None:
    kinds = list(dict.fromkeys(f"{p.dtype} on {p.device}" for p in parameters))
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise ValueError(f"parameters are {found}: a bucket holds one dtype on one device")
