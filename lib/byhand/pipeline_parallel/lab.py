"""Pipelines on real ranks for lectures and benchmarks: stages that sleep, and stages that train.

A stage that sleeps takes its time and no core, so any number of stages runs at full speed on two
cores: what is measured is the schedule and the messages, not the ranks' fight for the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from byhand.model.digits import Digits
from byhand.model.mlp import GELU, MLP, mean_squared_error, random_weights, softmax_cross_entropy
from byhand.model.optimizers import AdamW
from byhand.pipeline_parallel.worker import Pipeline, cut, partition, timeline
from byhand.pipeline_schedules import Schedule, Timeline, simulate
from byhand.runtime import Run, launch


@dataclass
class Sleep:
    """A layer that computes nothing, in the given seconds."""

    forward_seconds: float
    backward_input_seconds: float
    backward_weight_seconds: float

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """x -> x."""
        time.sleep(self.forward_seconds)
        return x, None

    def backward(self, grad_y: Tensor, saved: None) -> Tensor:
        """grad_y -> grad_y, in the time of both halves."""
        time.sleep(self.backward_input_seconds + self.backward_weight_seconds)
        return grad_y

    backward_first = backward

    def backward_input(self, grad_y: Tensor, saved: None) -> tuple[Tensor, None]:
        """grad_y -> grad_y."""
        time.sleep(self.backward_input_seconds)
        return grad_y, None

    def backward_weight(self, kept: None) -> None:
        """Nothing."""
        time.sleep(self.backward_weight_seconds)

    def parameters(self) -> list[Tensor]:
        """None."""
        return []


def sleep_through(
    schedule: Schedule,
    forward: float = 0.01,
    backward_input: float = 0.01,
    backward_weight: float = 0.01,
) -> Timeline:
    """The recorded timeline of one step whose stages sleep these seconds per forward, and so on.

    As in `simulate`, they are those of one chunk. A rank is a stage; a message holds 8 KB.
    """
    seconds = (forward, backward_input, backward_weight)
    run = launch(_sleep_on_rank, len(schedule), (schedule, seconds))
    return timeline(run.results)


def _sleep_on_rank(rank: int, world_size: int, schedule: Schedule, seconds: tuple) -> Any:
    num_chunks = 1 + max(action.chunk for action in schedule[0])
    pipeline = Pipeline([Sleep(0, 0, 0) for _ in range(num_chunks)], schedule)
    inputs = [torch.zeros(1, 2048)] * pipeline.num_micro_batches
    pipeline.step(inputs, inputs, mean_squared_error)  # learns shapes, and connects
    pipeline.chunks = [Sleep(*seconds) for _ in range(num_chunks)]
    return pipeline.step(inputs, inputs, mean_squared_error)


def held_activations(
    make: Callable[[int, int], Schedule],
    num_stages: int,
    num_micro_batches: int,
    num_rows: int = 64,
    hidden: int = 512,
) -> tuple[list[int], list[int]]:
    """Bytes of activations that each stage holds at most: predicted, and counted on real ranks.

    A stage is 16 -> hidden -> 16 with a GELU between; `num_rows` is those of a micro-batch.
    Counted is what many micro-batches hold more than one, and what one saves.
    """
    saved = num_rows * (16 + 2 * hidden) * 4  # x, and both sides of the GELU
    predicted = simulate(make(num_stages, num_micro_batches)).peak_in_flight
    peaks = []
    for m in (1, num_micro_batches):
        run = launch(
            _hold_on_rank, num_stages, (make(num_stages, m), num_rows, hidden), memory=True
        )
        peaks.append(run.peak_bytes)
    counted = [many - one + saved for one, many in zip(*peaks, strict=True)]
    return [held * saved for held in predicted], counted


def _hold_on_rank(
    rank: int, world_size: int, schedule: Schedule, num_rows: int, hidden: int
) -> None:
    stage = MLP.from_weights(random_weights([16, hidden, 16]), GELU)
    x = torch.zeros(num_rows, 16)
    pipeline = Pipeline([stage], schedule)
    inputs = [x] * pipeline.num_micro_batches
    pipeline.step(inputs, inputs, mean_squared_error)


def train_digits(
    weights: list[tuple[Tensor, Tensor]],
    digits: Digits,
    schedule: Schedule,
    num_epochs: int = 10,
    batch_size: int = 128,
    lr: float = 3e-3,
) -> tuple[list[float], MLP, Run]:
    """Train an MLP of these weights on the digits, its layers shared out over the stages.

    Returns the loss of every step, the trained model put together again, and the run.
    """
    args = (weights, digits, schedule, num_epochs, batch_size, lr)
    run = launch(_train_on_rank, len(schedule), args)
    layers = [layer for _, layers in run.results for layer in layers]
    return run.results[-1][0], MLP(layers), run


def _train_on_rank(
    rank: int,
    world_size: int,
    weights: list[tuple[Tensor, Tensor]],
    digits: Digits,
    schedule: Schedule,
    num_epochs: int,
    batch_size: int,
    lr: float,
) -> tuple[list[float], list[Any]]:
    layers = MLP.from_weights(weights).layers
    mine = partition(len(layers), world_size)[rank]
    stage = MLP([layers[number] for number in mine])
    pipeline, optimizer = Pipeline([stage], schedule), AdamW(stage.parameters(), lr)
    m, losses = pipeline.num_micro_batches, []
    for rows in batches(len(digits.train_x), num_epochs, batch_size):
        stage.zero_gradients()
        x, labels = cut(digits.train_x[rows], m), cut(digits.train_labels[rows], m)
        losses.append(pipeline.step(x, labels, softmax_cross_entropy).loss)
        optimizer.step(stage.gradients())
    return [float(loss) for loss in losses if loss is not None], stage.layers


def train_on_one_device(
    weights: list[tuple[Tensor, Tensor]],
    digits: Digits,
    num_epochs: int = 10,
    batch_size: int = 128,
    lr: float = 3e-3,
) -> tuple[list[float], MLP]:
    """The same without a pipeline: the loss of every step, and the trained model."""
    model = MLP.from_weights(weights)
    optimizer, losses = AdamW(model.parameters(), lr), []
    for rows in batches(len(digits.train_x), num_epochs, batch_size):
        model.zero_gradients()
        y, saved = model.forward(digits.train_x[rows])
        loss, grad_y = softmax_cross_entropy(y, digits.train_labels[rows])
        model.backward(grad_y, saved)
        optimizer.step(model.gradients())
        losses.append(float(loss))
    return losses, model


def batches(num_samples: int, num_epochs: int, batch_size: int) -> list[Tensor]:
    """The samples of every step: each epoch in an order of its own, whole batches only."""
    found = []
    for epoch in range(num_epochs):
        order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
        found += order[: num_samples // batch_size * batch_size].split(batch_size)
    return found
