"""Mixed precision: what fp16 and bf16 need so that training in them is no other.

    LossScale         keeps small gradients above fp16's smallest number, and skips what overflows
    ScaledOptimizer   an optimizer that takes gradients of the scaled loss
    MasterWeights     an optimizer that keeps parameters in float32 beside those computed with

fp16 counts in steps of 2^-24 at the least, and most gradients are smaller: so the loss's gradient
is multiplied by a scale, and all gradients with it. The scale falls when one of them overflows, and
that step is skipped; it rises when none did for long. bf16 has float32's range and needs no scale.
Both have too few digits to add a small step to a large weight: master weights have them.

Ranks must agree: where one overflows, all skip. That costs one all-reduce of one number a step.
They fit together around any optimizer, innermost first:

    MasterWeights(lambda masters: ScaledOptimizer(AdamW(masters), loss_scale), parameters)
    ShardedOptimizer(layers, lambda shards: ScaledOptimizer(AdamW(shards), loss_scale), ...)

In the second ZeRO's shards are the master weights: its `dtype` says what is computed in. Wherever
the scale stands, it is divided out in float32, so gradients in fp16 may come as they are.
Source: Micikevicius et al. 2018, arXiv:1710.03740. The rule is torch.amp.GradScaler's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.shards import Group

LEAST, MOST = 2.0**-24, 2.0**127  # of a scale: fp16's smallest number, float32's largest power of 2


class LossScale:
    """A scale that falls after each overflow and rises after `every` steps without one.

    value: the scale, the same on all ranks. steps_since: how many went well since it changed.

    >>> def steps(rank, world_size):
    ...     scale = LossScale(start=8.0, every=2)
    ...     values = []
    ...     for finite in (True, True, False, True):
    ...         scale.update(finite)
    ...         values.append(scale.value)
    ...     return values
    >>> launch(steps, 1).results[0]
    [8.0, 16.0, 8.0, 8.0]
    """

    def __init__(
        self,
        start: float = 2.0**16,
        growth: float = 2.0,
        backoff: float = 0.5,
        every: int = 2000,
        group: Group = None,
    ):
        """group: every rank that holds a shard or a replica of the model: they step together.

        Raises:
            ValueError: growth is below 1, backoff not between 0 and 1, or every below 1.
        """
        if growth < 1 or not 0 < backoff < 1 or every < 1 or not LEAST <= start <= MOST:
            raise ValueError(
                f"a loss scale from {start}, times {growth} every {every} steps, times {backoff} "
                f"after an overflow: these must be from {LEAST} to {MOST}, at least 1, at least 1, "
                "and between 0 and 1"
            )
        self.value, self.growth, self.backoff, self.every = start, growth, backoff, every
        self.group, self.steps_since = group, 0

    def scale(self, grad: Tensor) -> Tensor:
        """The gradient of the loss, times the scale: a new tensor, with which backward begins."""
        return grad * self.value

    def unscale(self, gradients: list[Tensor]) -> tuple[list[Tensor], bool]:
        """The gradients divided by the scale; whether those of all ranks were finite before.

        They are summed over replicas already; a rank may have none. Divided in float32 at least,
        for in fp16 the small ones would be lost: in place what has so many digits, else a copy.
        Sends 2 (n-1)/n · 4 bytes: one all-reduce of one number.
        """
        wide = [g.to(torch.promote_types(g.dtype, torch.float32)) for g in gradients]
        found = wide or [torch.zeros(())]  # a rank may have no gradients
        overflow = torch.stack([~g.isfinite().all() for g in found]).any().float()
        if dist.is_initialized():  # one device alone needs no process group
            dist.all_reduce(overflow, dist.ReduceOp.MAX, group=self.group)
        for gradient in wide:
            gradient.mul_(1 / self.value)
        return wide, not overflow.item()

    def step(self, optimizer: Any, gradients: list[Tensor]) -> bool:
        """Unscale; the optimizer's step, on all ranks or on none; the next scale.

        Returns whether the step was taken. The optimizer is given what `unscale` divided, so in
        float32 at least. Sends what `unscale` sends, and the optimizer's step.

        Raises:
            FloatingPointError: a gradient is infinite or no number, however small the scale.
        """
        wide, finite = self.unscale(gradients)
        if finite:
            optimizer.step(wide)
        self.update(finite)
        return finite

    def update(self, finite: bool) -> None:
        """The scale of the next step, after one whose gradients were all finite, or were not."""
        self.steps_since = self.steps_since + 1 if finite else 0
        if not finite:
            self.value *= self.backoff
        elif self.steps_since >= self.every:  # may be more, where a run goes on with another
            self.value, self.steps_since = min(self.value * self.growth, MOST), 0
        if self.value < LEAST:
            raise FloatingPointError(
                f"gradients are not finite though the loss scale fell to {self.value:.1e}: it is "
                "not the scale; look for inf and nan in the data, the loss and the weights"
            )

    def state(self) -> dict[str, float]:
        """What a checkpoint needs."""
        return {"value": self.value, "steps_since": self.steps_since}

    def load(self, state: dict[str, float]) -> None:
        """Go on from there."""
        self.value, self.steps_since = state["value"], int(state["steps_since"])


class ScaledOptimizer:
    """An optimizer that is given gradients of the scaled loss, which it divides in float32.

    Whoever clips them before, as ShardedOptimizer's step does, gives max_norm times the scale.
    """

    def __init__(self, optimizer: Any, loss_scale: LossScale):
        self.optimizer, self.loss_scale = optimizer, loss_scale

    def step(self, gradients: list[Tensor]) -> None:
        """LossScale's step: taken on all ranks or on none."""
        self.loss_scale.step(self.optimizer, gradients)


class MasterWeights:
    """An optimizer of copies of the parameters, in more digits than are computed with.

    masters: the copies, which begin equal. 4 bytes a parameter more, in float32.

    >>> from functools import partial
    >>> from byhand.model.optimizers import SGD
    >>> weight = torch.ones(1, dtype=torch.bfloat16)
    >>> optimizer = MasterWeights(partial(SGD, lr=0.001), [weight])
    >>> for step in range(4):
    ...     optimizer.step([torch.ones(1)])
    >>> weight, optimizer.masters
    (tensor([0.9961], dtype=torch.bfloat16), [tensor([0.9960])])
    """

    def __init__(
        self,
        optimizer: Callable[[list[Tensor]], Any],
        parameters: list[Tensor],
        dtype: torch.dtype = torch.float32,
    ):
        """optimizer: makes one of a list of tensors, as AdamW does: it is given the masters."""
        self.parameters = parameters
        self.masters = [parameter.to(dtype, copy=True) for parameter in parameters]
        self.optimizer = optimizer(self.masters)

    def step(self, gradients: list[Tensor]) -> None:
        """Step with the masters, and round them into the parameters, in place.

        gradients: in any dtype; they stay as they are, and for a moment all are there in the
        masters' dtype, too. Sends what the optimizer's step sends.
        """
        wide = [g.to(m.dtype, copy=True) for g, m in zip(gradients, self.masters, strict=True)]
        self.optimizer.step(wide)
        for parameter, master in zip(self.parameters, self.masters, strict=True):
            parameter.copy_(master)
