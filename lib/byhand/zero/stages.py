"""ZeRO: data parallelism in which no two ranks keep the same number. Three stages, each one more.

    stage  class               a rank keeps 1/n of               sends for a step, of S bytes
    1      ShardedOptimizer    the optimizer's state             2 S (n-1)/n
    2      ShardedGradients    ... and the gradients             2 S (n-1)/n
    3      ShardedParameters   ... and the parameters            3 S (n-1)/n

An all-reduce is a reduce-scatter and an all-gather. Between the two lies the optimizer's step: it
works on each number by itself, so a rank that has 1/n of the sums can update 1/n of the weights.

Losses are means over the global batch, as in byhand.data_parallel: gradients are summed, and
nothing is divided. n ranks in `group`; with `replicas`, n is the size of a shard group, and
replicas sum their shards of the gradient once a step: hybrid sharding (HSDP).
Sources: Rajbhandari et al. 2020, arXiv:1910.02054 (ZeRO), sections 5 and 7; Zhao et al. 2023,
arXiv:2304.11277 (FSDP), section 3.2.2 (hybrid) and 3.3 (prefetching).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.layer import Layer
from byhand.zero.flat import Flat, Group, owner, torchs_own, units


class ShardedOptimizer:
    """Stage 1. Weights and gradients are whole; a rank's optimizer knows its shards only.

    >>> from byhand.mlp import Linear
    >>> from byhand.model.optimizers import AdamW
    >>> def step(rank, world_size):
    ...     model = ShardedOptimizer([Linear(torch.eye(4), torch.zeros(4))], AdamW)
    ...     y, saved = model.forward(torch.ones(1, 4))
    ...     model.backward(y, saved)
    ...     model.step()
    ...     return sum(tensor.numel() for tensor in model.optimizer.mean)
    >>> launch(step, 1).results, launch(step, 2).results
    ([20], [10, 10])
    """

    stay_whole = True  # the weights, from step to step

    def __init__(
        self,
        layers: Iterable[Layer],
        optimizer: Callable[[list[Tensor]], Any],
        group: Group = None,
        replicas: Group = None,
        dtype: torch.dtype | None = None,
        reduce_dtype: torch.dtype | None = None,
        reduce_scatter: Callable[[Tensor, Tensor, Group], Any] = torchs_own,
    ):
        """Take over rank 0's parameters: a broadcast a unit.

        layers: one after the other, as MLP.layers or gpt_layers; may be made as they are read.
        optimizer: makes one of a list of tensors, as AdamW does.
        replicas: the ranks that hold the same shard as this one; None: there are no others.
        dtype: what is computed in and gathered; the parameters' own when None. They stay as they
        are in the shards. reduce_dtype: what gradients are summed in; dtype when None.
        reduce_scatter: what sums them; byhand.zero.exchange has another.
        """
        self.group, self.replicas = group, replicas
        self.units, self.flats, self.flat_of = [], [], []  # flat_of: for each unit, which it uses
        for unit in units(layers):
            if unit.parameters():
                self.flats.append(Flat(unit, group, replicas, dtype, reduce_dtype, reduce_scatter))
                if self.stay_whole:
                    self.flats[-1].stay_whole()
            self.units.append(unit)
            self.flat_of.append(self._flat_with(owner(unit.layers[0]), unit))
        self.optimizer = optimizer([flat.shard for flat in self.flats])
        self.begin()

    def _flat_with(self, layer: Layer, unit: Layer) -> Flat:
        """The flat parameter of `unit`; or, of a head that has none, that of the table's owner."""
        where = [f for f in self.flats if unit is f.unit or layer in f.unit.layers]
        return where[-1]

    def begin(self) -> None:
        """Make everything whole that this stage keeps so: weights, and gradients of 0."""
        self.gather()
        for flat in self.flats:
            flat.make_grad()
            flat.grad_whole.zero_()

    def gather(self) -> None:
        """New weights for everybody: one all-gather a unit, S bytes together."""
        for flat in self.flats:
            flat.start_gather()
            flat.finish_gather()

    def in_use(self, numbers: Iterable[int], last: bool = True) -> Iterator[int]:
        """These units, in this order, each while its weights are whole: here always."""
        return iter(numbers)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x, this rank's rows, in the dtype that is computed in -> y, and what backward needs."""
        saved = []
        for number in self.in_use(range(len(self.units)), last=False):
            x, item = self.units[number].forward(x)
            saved.append(item)
        return x, saved

    def backward(self, grad_y: Tensor, saved: list[Any]) -> None:
        """Add to this rank's gradients. Sends nothing, however many micro-batches there are."""
        for number in reversed(range(len(self.units))):
            grad_y = self.backward_of(number, grad_y, saved)

    def backward_of(self, number: int, grad_y: Tensor, saved: list[Any]) -> Any:
        """Backward of one unit; where it is the first, nobody needs its grad_x."""
        self.flat_of[number].partial = True
        if number > 0:
            return self.units[number].backward(grad_y, saved[number])
        self.units[0].backward_first(grad_y, saved[0])
        return None

    def sum_gradients(self) -> None:
        """partial -> sharded: one reduce-scatter for each unit whose gradient is not summed yet.

        `step` does it, too. After it comes a step: no backward adds to what is summed.
        """
        for flat in self.flats:
            if flat.partial:
                flat.start_reduce()
                flat.finish_reduce()

    def step(self, max_norm: float | None = None) -> Tensor | None:
        """Update, and forget the gradients; before that, if asked to, clip them to max_norm.

        Returns their norm before, if it was asked for: of all numbers, each in one rank's shard.

        Raises:
            RuntimeError: there was no backward since the last step.
        """
        self.sum_gradients()
        if missing := sum(flat.grad_shard is None for flat in self.flats):
            count = f"{missing} of {len(self.flats)} units"
            raise RuntimeError(f"{count} have no gradient: call backward before step")
        gradients = [flat.grad_shard.to(flat.shard.dtype) for flat in self.flats]
        if self.replicas is not None:
            for gradient in gradients:
                dist.all_reduce(gradient, group=self.replicas)
        norm = None if max_norm is None else clip(gradients, max_norm, self.group)
        self.optimizer.step(gradients)
        for flat in self.flats:
            flat.grad_shard = None
        self.begin()
        return norm

    def parameters(self) -> list[Tensor]:
        """Copies of all parameters, whole, in the dtype that is computed in: for a check."""
        every = range(len(self.units))
        return [p.clone() for number in self.in_use(every) for p in self.units[number].parameters()]


class ShardedGradients(ShardedOptimizer):
    """Stage 2. A unit's whole gradient lives from its backward until it has been summed.

    >>> from byhand.mlp import Linear
    >>> from byhand.model.optimizers import AdamW
    >>> def step(rank, world_size, kind):
    ...     model = kind([Linear(torch.eye(64), torch.zeros(64)) for _ in range(4)], AdamW)
    ...     y, saved = model.forward(torch.ones(1, 64))
    ...     model.backward(y, saved)
    ...     model.step()
    >>> for kind in (ShardedOptimizer, ShardedGradients, ShardedParameters):
    ...     print(min(launch(step, 2, (kind,), memory=True).peak_bytes))
    217600
    209280
    201216
    """

    def begin(self) -> None:
        """The weights alone are whole."""
        self.gather()
        for flat in self.flats:
            flat.free_grad()

    def backward(self, grad_y: Tensor, saved: list[Any], synchronise: bool = True) -> None:
        """Add to the shards of the gradients: S bytes, reduce-scattered unit by unit.

        One unit's travel while the next one's are made, so two are whole at most. A tied table's
        are sent once, so they are whole beside these from the head's backward to the table's own.
        With synchronise=False all of them stay whole, and nothing is sent: the bytes of stage 1 for
        micro-batches, and its memory.
        """
        sending = None
        for number in self.in_use(reversed(range(len(self.units)))):
            flat = self.flat_of[number]
            flat.make_grad()  # room for the unit's whole gradient
            grad_y = self.backward_of(number, grad_y, saved)
            if synchronise and flat not in self.flat_of[:number]:  # none to come adds to it
                if sending is not None:
                    sending.finish_reduce()  # of the unit before: its whole gradient goes
                flat.start_reduce()  # travels while backward goes on
                flat.free_grad()  # now only the message holds the whole gradient
                sending = flat
        if sending is not None:
            sending.finish_reduce()


class ShardedParameters(ShardedGradients):
    """Stage 3. A unit's weights are gathered before each use, and freed after it.

    >>> from byhand.mlp import Linear
    >>> from byhand.model.optimizers import AdamW
    >>> def step(rank, world_size):
    ...     layers = [Linear(torch.eye(64), torch.zeros(64)) for _ in range(4)]
    ...     model = ShardedParameters(layers, AdamW)
    ...     y, saved = model.forward(torch.ones(1, 64))
    ...     model.backward(y, saved)
    ...     model.step()
    >>> ledger = launch(step, 2).ledger
    >>> ledger.count("all_gather", rank=0), ledger.count("reduce_scatter", rank=0)
    (8, 4)
    """

    stay_whole = False

    def __init__(self, *args: Any, prefetch: bool = True, reshard: bool = True, **options: Any):
        """As stage 1. prefetch: gather the next unit's weights while this one computes.

        reshard=False keeps weights from forward to backward: 2 S (n-1)/n sent, and all weights
        held then. (FSDP2's reshard_after_forward.)
        """
        self.prefetch, self.reshard = prefetch, reshard
        super().__init__(*args, **options)

    def begin(self) -> None:
        """Nothing is whole."""
        for flat in self.flats:
            flat.free()
            flat.free_grad()

    def in_use(self, numbers: Iterable[int], last: bool = True) -> Iterator[int]:
        """These units, in this order, each while its weights are whole: one, two with prefetch.

        A tied table stays whole from the first unit that uses it to the last.

        last: whether this is their last use before the optimizer's step.
        """
        numbers = list(numbers)
        until = {self.flat_of[number]: number for number in numbers}  # the last use of each
        for number, following in zip_longest(numbers, numbers[1:]):
            flat = self.flat_of[number]
            flat.fetch()  # begin the unit's all-gather, unless it is under way
            flat.finish_gather()
            if self.prefetch and following is not None:
                self.flat_of[following].fetch()  # travels while this unit computes
            yield number  # the unit computes
            if number == until[flat] and (last or self.reshard):
                flat.free()


def clip(gradients: Iterable[Tensor], max_norm: float, group: Group = None) -> Tensor:
    """Scale the ranks' shards, in place, so that their norm together is at most max_norm.

    Returns the norm before, the same on all ranks. One all-reduce of 8 bytes.

    >>> def norm(rank, world_size):
    ...     shards = [torch.tensor([3.0 + rank])]
    ...     return clip(shards, max_norm=1.0), shards[0]
    >>> launch(norm, 2).results
    [(tensor(5., dtype=torch.float64), tensor([0.6000])),
     (tensor(5., dtype=torch.float64), tensor([0.8000]))]
    """
    gradients = list(gradients)
    norms = [torch.linalg.vector_norm(gradient, dtype=torch.float64) for gradient in gradients]
    square = torch.stack(norms).square().sum()
    dist.all_reduce(square, group=group)
    norm = square.sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_
    for gradient in gradients:
        gradient.mul_(scale)
    return norm
