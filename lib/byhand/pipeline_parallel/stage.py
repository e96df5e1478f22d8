"""One stage of a pipeline, by hand: one forward or one backward of a micro-batch. Read this first.

The order of the calls is the schedule, and it is the caller's: three loops make 1F1B, as lecture
09 writes them. The shape that crosses a boundary is told by the caller, and all micro-batches have
it. `worker` takes micro-batches of unequal size, posts receives ahead, and splits a stage into
chunks.

A loss is the mean over the *global* batch, so the gradients of the micro-batches add up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.layer import Layer
from byhand.pipeline_schedules import Span
from byhand.pipeline_schedules.actions import Action


class Stage:
    """The layers of rank r of p, and what it holds of the micro-batches in flight."""

    def __init__(
        self,
        layers: Layer,
        micro_batches: Sequence[Tensor],
        targets: Sequence[Tensor],
        loss: Callable[..., tuple[Tensor, Tensor]],
        shape: tuple[int, ...],
    ):
        """For one step: micro_batches count on stage 0, targets on the last one.

        shape: of what crosses a boundary, either way; its dtype is that of the micro-batches.
        """
        self.rank, self.last = dist.get_rank(), dist.get_world_size() - 1
        self.layers, self.inputs, self.targets, self.loss = layers, micro_batches, targets, loss
        self.shape, self.dtype = shape, micro_batches[0].dtype
        self.global_batch = sum(map(len, targets))
        self.saved: dict[int, Any] = {}  # by micro-batch: what its backward will need
        self.grad_y: dict[int, Tensor] = {}  # of the losses, on the last stage
        self.losses: list[Tensor] = []
        self.sends: list[tuple[Any, Tensor]] = []  # a work, and what it sends
        self.spans: list[Span] = []

    def forward(self, i: int) -> None:
        """Micro-batch i comes in, is computed, and goes on to the next stage."""
        x = self.inputs[i] if self.rank == 0 else self.receive(self.rank - 1)
        start = time.monotonic()
        y, self.saved[i] = self.layers.forward(x)
        if self.rank == self.last:
            loss, self.grad_y[i] = self.loss(y, self.targets[i], self.global_batch)
            self.losses.append(loss)
        self.note("forward", i, start)
        if self.rank < self.last:
            self.send(y, self.rank + 1)

    def backward(self, i: int) -> None:
        """Its gradient comes in, adds to those of the weights, and goes back one stage."""
        is_last = self.rank == self.last
        grad_y = self.grad_y.pop(i) if is_last else self.receive(self.rank + 1)
        start = time.monotonic()
        grad_x = self.layers.backward(grad_y, self.saved.pop(i))  # pop frees its memory
        self.note("backward", i, start)
        if self.rank > 0:
            self.send(grad_x, self.rank - 1)

    def receive(self, peer: int) -> Tensor:
        """Wait for the next message of a neighbour."""
        tensor = torch.empty(self.shape, dtype=self.dtype)
        dist.recv(tensor, peer)
        return tensor

    def send(self, tensor: Tensor, peer: int) -> None:
        """Begin to send, and go on; the tensor must stay as it is until it has left."""
        tensor = tensor.contiguous()  # a message's numbers lie row by row
        self.sends.append((dist.isend(tensor, peer), tensor))

    def finish(self) -> Tensor | None:
        """Wait until all has left; the loss of the step on the last stage, else None."""
        for work, _ in self.sends:
            work.wait()
        return torch.stack(self.losses).sum() if self.losses else None

    def note(self, kind: str, i: int, start: float) -> None:
        """Keep when it computed, for the picture."""
        self.spans.append(Span(self.rank, Action(kind, i), start, time.monotonic()))
