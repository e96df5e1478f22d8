"""The shapes of a pipeline's messages: told once from stage to stage, then known to all.

A receiver needs a tensor of the right shape before the message comes. The first step finds the
shapes by passing tensors without rows through the model; the first stage's micro-batches give the
numbers of rows, which may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from byhand.model.layer import Layer
from byhand.pipeline_parallel.messages import Wire
from byhand.pipeline_schedules.routes import Route

MOST_DIMENSIONS = 6  # of an activation, rows included
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64)
HEADER_NUMBERS = 1 + MOST_DIMENSIONS  # and one for each micro-batch


class Shape(NamedTuple):
    """What crosses one boundary, forward and back: rows by micro-batch, all else is alike."""

    dtype: torch.dtype
    behind_rows: tuple[int, ...]
    rows: tuple[int, ...]

    def of(self, micro_batch: int) -> tuple[tuple[int, ...], torch.dtype]:
        """The shape and dtype of one message."""
        return (self.rows[micro_batch], *self.behind_rows), self.dtype

    def header(self) -> Tensor:
        """What the next stage must know, as numbers: always as many."""
        padding = [0] * (HEADER_NUMBERS - 2 - len(self.behind_rows))
        if len(self.behind_rows) >= MOST_DIMENSIONS:
            raise ValueError(
                f"an activation of {1 + len(self.behind_rows)} dimensions does not fit a header of "
                f"{MOST_DIMENSIONS}"
            )
        known = DTYPES.index(self.dtype), len(self.behind_rows), *self.behind_rows
        return torch.tensor([*known, *padding, *self.rows])


def read(header: Tensor) -> Shape:
    """The shape that the stage before has told."""
    dtype, count, *numbers = header.tolist()
    rows = numbers[HEADER_NUMBERS - 2 :]
    return Shape(DTYPES[dtype], tuple(numbers[:count]), tuple(rows))


def learn_shapes(
    chunks: Sequence[Layer],
    route: Route,
    num_micro_batches: int,
    wire: Wire,
    device: torch.device,
    micro_batches: Sequence[Tensor],
) -> dict[int, Shape]:
    """What crosses the boundaries of this stage: number g is that before global stage g.

    `micro_batches` counts on the first stage. Down the global stages goes a header of what arrives
    at each; then it returns, so that each two stages have met in both directions before a step,
    without which NCCL could wait for ever.
    Sends two headers of 8 · (7 + micro-batches) bytes over each boundary between two stages.
    """
    shapes, last, me = {}, len(route) - 1, wire.stage
    blank = torch.zeros(HEADER_NUMBERS + num_micro_batches, dtype=torch.int64)
    for chunk, here in zip(chunks, route.places(me), strict=True):
        if here == 0:
            x, rows = micro_batches[0], tuple(len(x) for x in micro_batches)
            shapes[0] = Shape(x.dtype, tuple(x.shape[1:]), rows)
        elif route[here - 1] != me:
            shapes[here] = read(wire.receive(blank, route[here - 1]))
        dtype, behind_rows, rows = shapes[here]
        y, _ = chunk.forward(torch.empty(0, *behind_rows, dtype=dtype, device=device))
        shapes[here + 1] = Shape(y.dtype, tuple(y.shape[1:]), rows)
        if here < last and route[here + 1] != me:
            wire.send(shapes[here + 1].header(), route[here + 1])
    for here in reversed(route.places(me)):
        if here < last and route[here + 1] != me:
            wire.receive(blank, route[here + 1])
        if here > 0 and route[here - 1] != me:
            wire.send(blank, route[here - 1])
    return shapes


def check_shapes(micro_batches: Sequence[Tensor], shape: Shape) -> None:
    """Accept micro-batches that have this shape.

    Raises:
        ValueError: they have another.
    """
    for number, x in enumerate(micro_batches):
        if (tuple(x.shape), x.dtype) != shape.of(number):
            known, dtype = shape.of(number)
            raise ValueError(
                f"micro-batch {number} is {list(x.shape)} {x.dtype}, but this pipeline began with "
                f"{list(known)} {dtype}: other shapes need another Pipeline"
            )
