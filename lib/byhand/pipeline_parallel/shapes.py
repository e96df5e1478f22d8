"""The shapes of a pipeline's messages: told once from stage to stage, then known to all.

A receiver needs a tensor of the right shape before the message comes. The first step finds the
shapes by passing tensors without rows through the model; the first stage's micro-batches give the
numbers of rows, which may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from byhand.pipeline_parallel.messages import Wire
from byhand.pipeline_schedules.actions import Message

MOST_DIMENSIONS = 6  # of an activation, rows included
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64)
HEADER_NUMBERS = 1 + MOST_DIMENSIONS  # and one for each micro-batch


class Shapes:
    """The shape and dtype of every message: rows by micro-batch, the rest by boundary.

    Boundary g is the one before global stage g; at boundary 0 are the data.
    """

    def __init__(self, num_stages: int):
        self.num_stages, self.rows = num_stages, list[int]()
        self.rest: dict[int, tuple[tuple[int, ...], torch.dtype]] = {}

    @property
    def num_rows(self) -> int:
        """Of all micro-batches together."""
        return sum(self.rows)

    def __getitem__(self, message: Message) -> tuple[tuple[int, ...], torch.dtype]:
        here = message.chunk * self.num_stages + message.sender
        shape, dtype = self.rest[here + 1 if message.product == "output" else here]
        return (self.rows[message.micro_batch], *shape), dtype

    def add(self, boundary: int, x: Tensor) -> None:
        """Learn a boundary from a tensor that crosses it."""
        if x.dim() > MOST_DIMENSIONS:
            raise ValueError(
                f"an activation of {x.dim()} dimensions does not fit a header of {MOST_DIMENSIONS}"
            )
        self.rest[boundary] = (tuple(x.shape[1:]), x.dtype)

    def header(self, boundary: int) -> Tensor:
        """What the next stage must know: dtype, dimensions, the shape behind the rows; the rows."""
        shape, dtype = self.rest[boundary]
        padding = [0] * (HEADER_NUMBERS - 2 - len(shape))
        return torch.tensor([DTYPES.index(dtype), len(shape), *shape, *padding, *self.rows])

    def read(self, header: Tensor, device: torch.device) -> Tensor:
        """Learn the rows; a tensor without rows of the shape and dtype in the header."""
        dtype, num_dimensions, *shape = header[:HEADER_NUMBERS].tolist()
        self.rows = header[HEADER_NUMBERS:].tolist()
        shape = shape[:num_dimensions]
        return torch.empty(0, *shape, dtype=DTYPES[dtype], device=device)

    def check(self, micro_batches: Sequence[Tensor]) -> None:
        """Accept micro-batches that have these shapes.

        Raises:
            ValueError: they have others.
        """
        shape, dtype = self.rest[0]
        for micro_batch, (x, rows) in enumerate(zip(micro_batches, self.rows, strict=True)):
            if x.shape != (rows, *shape) or x.dtype != dtype:
                raise ValueError(
                    f"micro-batch {micro_batch} is {list(x.shape)} {x.dtype}, but this pipeline "
                    f"began with {[rows, *shape]} {dtype}: other shapes need another Pipeline"
                )


def learn_shapes(
    chunks: Sequence[Any],
    num_stages: int,
    num_micro_batches: int,
    wire: Wire,
    device: torch.device,
    micro_batches: Sequence[Tensor],
) -> Shapes:
    """The shapes of all messages of this stage. `micro_batches` counts on the first stage.

    Down the global stages goes a header of what arrives at each; then it returns, so that each two
    stages have met in both directions before a step, without which NCCL could wait for ever.
    Sends two headers of 8 · (7 + micro-batches) bytes over each boundary between two stages.
    """
    shapes, last = Shapes(num_stages), len(chunks) * num_stages - 1
    before, after = (wire.stage - 1) % num_stages, (wire.stage + 1) % num_stages
    blank = torch.zeros(HEADER_NUMBERS + num_micro_batches, dtype=torch.int64)
    y = micro_batches[0][:0] if wire.stage == 0 else None
    for number, chunk in enumerate(chunks):
        here = number * num_stages + wire.stage
        if here == 0:
            shapes.rows = [len(x) for x in micro_batches]
        elif num_stages > 1:
            y = shapes.read(wire.receive(blank, before), device)
        shapes.add(here, y)
        y = chunk.forward(y)[0]
        shapes.add(here + 1, y)
        if here < last and num_stages > 1:
            wire.send(shapes.header(here + 1), after)
    for number in reversed(range(len(chunks) if num_stages > 1 else 0)):
        here = number * num_stages + wire.stage
        if here < last:
            wire.receive(blank, after)
        if here > 0:
            wire.send(blank, before)
    return shapes
