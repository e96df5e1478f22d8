"""Pipeline parallelism: the model cut by depth, and one worker that runs any schedule.

Every rank of `group` is a stage and keeps its own chunks of the model. Micro-batches flow through
the stages; a stage holds the activations of those it has forwarded and not yet backwarded, and of
no others. Losses and gradients equal those of the unsplit model, whatever the schedule, the number
of micro-batches, or their sizes: a loss is the mean over the *global* batch, so the gradients of
the micro-batches add up.

Bytes sent per micro-batch and boundary between stages: its activations, and as many backward.
Sources: Huang et al. 2019, arXiv:1811.06965; Narayanan et al. 2021, arXiv:2104.04473.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.layer import Layer
from byhand.pipeline_parallel.messages import Mailbox, Routes, Wire
from byhand.pipeline_schedules import Span, Timeline
from byhand.pipeline_schedules.actions import Action, Actions, check, incoming, makes, route_of
from byhand.words import counted


def cut(tensor: Tensor, num_micro_batches: int) -> list[Tensor]:
    """The rows of a batch as micro-batches, views of nearly equal size.

    Raises:
        ValueError: no micro-batch, or more than there are rows.

    >>> [len(rows) for rows in cut(torch.arange(10), 4)]
    [3, 3, 2, 2]
    """
    if not 1 <= num_micro_batches <= len(tensor):
        raise ValueError(
            f"{counted(len(tensor), 'row')} cannot make {num_micro_batches} micro-batches: there is"
            " at least one, and each has at least one row"
        )
    return list(tensor.tensor_split(num_micro_batches))


@dataclass
class Step:
    """A stage's part of a step: the loss (None but where the model ends), and when it computed."""

    loss: Tensor | None
    spans: list[Span]


@dataclass
class _Work:
    """What one stage holds during a step, by micro-batch and chunk."""

    mail: Mailbox
    inputs: Sequence[Tensor]
    score: Callable[[int, Tensor], tuple[Tensor, Tensor]]
    saved: dict[tuple[int, int], Any] = field(default_factory=dict)
    grad_y: dict[int, Tensor] = field(default_factory=dict)  # of the losses
    losses: list[Tensor] = field(default_factory=list)


class Pipeline:
    """A stage's chunks of the model and the schedule that it runs.

    Every chunk is a byhand.model.Layer; the schedule's route says which part of the model it is.

    >>> from byhand.mlp import Linear, mean_squared_error
    >>> from byhand.pipeline_schedules import gpipe
    >>> def step(rank, world_size):
    ...     layer = Linear(torch.eye(2), torch.zeros(2))
    ...     pipeline = Pipeline([layer], gpipe(world_size, 2), row_shape=(2,))
    ...     batch = cut(torch.ones(4, 2), 2)
    ...     return pipeline.step(batch, batch, mean_squared_error).loss
    >>> launch(step, 2).results
    [None, tensor(0.)]
    """

    def __init__(
        self,
        chunks: Sequence[Layer],
        schedule: Actions,
        row_shape: tuple[int, ...],
        dtype: torch.dtype = torch.float32,
        group: dist.ProcessGroup | None = None,
        reverse_group: dist.ProcessGroup | None = None,
    ):
        """This rank's chunks; the same schedule on every rank. `reverse_group`: see Wire.

        row_shape, dtype: of one row of what crosses a boundary, the same at all of them and either
        way: (D,) between layers of an MLP, (S, D) in a GPT.

        Raises:
            ScheduleError: the schedule cannot run.
            ValueError: not one stage per rank, or not the schedule's number of chunks.
        """
        check(schedule)
        num_ranks, self.num_stages = dist.get_world_size(group), len(schedule)
        self.stage, self.route = dist.get_rank(group), route_of(schedule)
        num_chunks = self.route.count(self.stage % self.num_stages)
        if self.num_stages != num_ranks or num_chunks != len(chunks):
            raise ValueError(
                f"the schedule is for {counted(self.num_stages, 'stage')} of"
                f" {counted(num_chunks, 'chunk')}, the group of {counted(num_ranks, 'rank')}, and"
                f" this one has {counted(len(chunks), 'chunk')}: a rank is a stage"
            )
        self.chunks, self.schedule = list(chunks), schedule
        self.is_first, self.is_last = (self.stage == end for end in (self.route[0], self.route[-1]))
        self.num_micro_batches = 1 + max(action.micro_batch for action in schedule[0])
        parameters = [tensor for chunk in self.chunks for tensor in chunk.parameters()]
        self.device = parameters[0].device if parameters else torch.device("cpu")
        self.row_shape, self.dtype = tuple(row_shape), dtype
        self._wire = Wire(group, reverse_group, self.device)
        self._routes = Routes(schedule, self.stage)
        if self._wire.on_nccl:
            self._wire.connect(self.route)

    def step(
        self,
        micro_batches: Sequence[Tensor],
        targets: Sequence[Tensor],
        loss: Callable[..., tuple[Tensor, Tensor]],
        global_batch: int | None = None,
    ) -> Step:
        """Forward and backward of one batch: adds to the chunks' gradients.

        micro_batches: with the same numbers of rows on every stage; what is in the rows counts on
        the route's first one. Those numbers may differ from one to the next, and from step to step.
        targets: count on the route's last stage, and may be missing elsewhere.
        loss(y, target, global_batch) -> (share of the loss, grad_y), as those in `mlp`.
        global_batch: all rows of all data-parallel replicas; the rows of this step when None.

        Raises:
            ValueError: not the schedule's number of micro-batches; or a chunk makes what is not of
                `row_shape` and `dtype`.
        """
        self._check(micro_batches, targets)
        rows = [len(micro_batch) for micro_batch in micro_batches]
        num_rows = sum(rows) if global_batch is None else global_batch

        def score(micro_batch: int, y: Tensor) -> tuple[Tensor, Tensor]:
            return loss(y, targets[micro_batch], num_rows)

        shapes = [(count, *self.row_shape) for count in rows]
        mail = Mailbox(self._routes, self._wire, shapes, self.dtype)
        work = _Work(mail, micro_batches, score)
        spans = [self._do(action, work) for action in self.schedule[self.stage]]
        mail.close()
        return Step(torch.stack(work.losses).sum() if work.losses else None, spans)

    def _check(self, micro_batches: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
        given = {"micro-batches": micro_batches} | ({"targets": targets} if self.is_last else {})
        for name, tensors in given.items():
            if len(tensors) != self.num_micro_batches:
                raise ValueError(
                    f"stage {self.stage} is given {len(tensors)} {name}, but the schedule runs "
                    f"{counted(self.num_micro_batches, 'micro-batch')}"
                )

    def _do(self, action: Action, work: _Work) -> Span:
        """Wait for what `action` needs, do it, and begin to send what it makes."""
        needed = incoming(action, self.stage, self.route)
        arrived = work.mail.receive(needed).to(self.device) if needed else None
        start = time.monotonic()
        result = getattr(self, "_" + action.kind)(action, arrived, work)
        end = time.monotonic()
        if made := makes(action, self.stage, self.route):
            work.mail.send(made, result)
        return Span(self.stage, action, start, end)

    def _place(self, action: Action) -> int:
        return self.route.place[self.stage, action.chunk]

    def _forward(self, action: Action, x: Tensor | None, work: _Work) -> Tensor:
        place = (action.micro_batch, action.chunk)
        x = work.inputs[action.micro_batch] if x is None else x
        y, work.saved[place] = self.chunks[action.chunk].forward(x)
        if self._place(action) == len(self.route) - 1:
            loss, y = work.score(action.micro_batch, y)
            work.losses.append(loss)
            work.grad_y[action.micro_batch] = y
        return y

    def _backward(self, action: Action, grad_y: Tensor | None, work: _Work) -> Tensor | None:
        grad_y = work.grad_y.pop(action.micro_batch) if grad_y is None else grad_y
        saved = work.saved.pop((action.micro_batch, action.chunk))
        chunk = self.chunks[action.chunk]
        if self._place(action) == 0:
            chunk.backward_first(grad_y, saved)  # nobody needs the gradient of the data
            return None
        return chunk.backward(grad_y, saved)

    def _backward_input(self, action: Action, grad_y: Tensor | None, work: _Work) -> Tensor:
        grad_y = work.grad_y.pop(action.micro_batch) if grad_y is None else grad_y
        place = (action.micro_batch, action.chunk)
        saved = work.saved.pop(place)
        grad_x, work.saved[place] = self.chunks[action.chunk].backward_input(grad_y, saved)
        return grad_x

    def _backward_weight(self, action: Action, _: None, work: _Work) -> None:
        self.chunks[action.chunk].backward_weight(
            work.saved.pop((action.micro_batch, action.chunk))
        )


def timeline(steps: Iterable[Step]) -> Timeline:
    """The stages' parts of one step, in order, on one clock that starts at 0.

    The clock is the machine's, so the stages ran on one machine. On CUDA an action's time is that
    of giving it to the device.
    """
    spans = [span for step in steps for span in step.spans]
    zero = min(span.start for span in spans)
    moved = [Span(s.stage, s.action, s.start - zero, s.end - zero) for s in spans]
    return Timeline(moved, 1 + max(span.stage for span in spans))
