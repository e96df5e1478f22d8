"""A training step of an MLP, predicted from a fitted alpha and beta and then taken on real ranks.

On the same ranks, in one launch, taking turns: what a rank computes in the step (all ranks at
once, so that cores they share are shared here too), and the step itself, with the library's
data_parallel, tensor_parallel and pipeline_parallel as they stand.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from byhand.communication_cost import AlphaBeta
from byhand.communication_cost.timing import Timing, device, take_turns
from byhand.data_parallel import DataParallel
from byhand.hybrid_parallel.mlp_cost import (
    LayerSeconds,
    StepCost,
    data_parallel_step,
    pipeline_step,
    tensor_parallel_step,
)
from byhand.model.mlp import MLP, mean_squared_error, random_weights
from byhand.pipeline_parallel import Pipeline, cut
from byhand.pipeline_schedules import one_forward_one_backward
from byhand.runtime import Run, launch
from byhand.tensor_parallel import TensorParallelMLP

MICRO_BATCHES = {"data": 1, "tensor": 1, "pipeline": 4}  # by plan
PLANS = tuple(MICRO_BATCHES)


@dataclass(frozen=True)
class Model:
    """`num_layers` layers of width × width, and a global batch of `num_rows` rows."""

    width: int
    num_layers: int
    num_rows: int

    def __str__(self) -> str:
        return f"{self.num_layers} layers of {self.width}², {self.num_rows} rows"

    @property
    def layer_bytes(self) -> int:
        """The parameters of one layer."""
        return 4 * (self.width**2 + self.width)

    @property
    def output_bytes(self) -> int:
        """One layer's output for the whole batch."""
        return 4 * self.num_rows * self.width


MODELS = (Model(384, 4, 512), Model(512, 4, 512), Model(640, 6, 512))


@dataclass(frozen=True)
class Step:
    """One plan's step: as predicted, as timed, and the bytes each rank sent by the ledger."""

    plan: str
    model: Model
    predicted: StepCost
    measured: Timing
    sent_bytes: tuple[int, ...]

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted.seconds / self.measured.median - 1


def take_step(
    plan: str,
    model: Model,
    all_reduce: AlphaBeta,
    send: AlphaBeta,
    world_size: int = 2,
    repetitions: int = 9,
    **options: Any,
) -> Step:
    """Predict the step of a plan of PLANS from measured compute and fitted lines; then take it.

    all_reduce, send: lines fitted to the ring's cost and to one message's, on the same ranks.

    Raises:
        ValueError: an unknown plan.
    """
    if plan not in PLANS:
        raise ValueError(f"unknown plan {plan!r}; known are {', '.join(PLANS)}")

    def on_rank(rank: int, world_size: int) -> tuple[LayerSeconds, Timing]:
        step = _make_step(rank, world_size, plan, model)
        step()  # before the first barrier: the bytes
        calls = _compute_calls(plan, model, world_size) | {"step": step}
        timings = take_turns(calls, repetitions)
        return _layer_seconds(timings, plan, model, world_size), timings["step"]

    run = launch(on_rank, world_size, **options)
    layer, measured = run.results[0]
    spare = options.get("network") is not None or world_size < (os.cpu_count() or 1)
    predicted = predict(plan, model, layer, all_reduce, send, world_size, spare)
    sent = tuple(_one_step_bytes(run, rank) for rank in range(world_size))
    return Step(plan, model, predicted, measured, sent)


def predict(
    plan: str,
    model: Model,
    layer: LayerSeconds,
    all_reduce: AlphaBeta,
    send: AlphaBeta,
    world_size: int,
    overlap: bool = True,
) -> StepCost:
    """The step's cost. layer: what a rank computes of one layer, for its rows or a micro-batch.

    overlap: whether communication can hide, which it does behind a slow link or on a core to spare.
    """
    ring = partial(all_reduce.seconds, "ring", world_size)
    if plan == "data":
        buckets = [[number] for number in reversed(range(model.num_layers))]
        return data_parallel_step(layer, buckets, model.layer_bytes, world_size, ring, overlap)
    if plan == "tensor":
        pairs = model.num_layers // 2
        return tensor_parallel_step(layer, pairs, model.output_bytes, world_size, ring, overlap)
    stage = layer.times(model.num_layers / world_size)
    m = MICRO_BATCHES["pipeline"]
    schedule = one_forward_one_backward(world_size, m)
    message_bytes = model.output_bytes / m
    return pipeline_step(schedule, stage, message_bytes, partial(send.seconds, "send", 2))


def take_steps(rank: int, world_size: int, plan: str, model: Model, num_steps: int) -> None:
    """For `launch`: that many steps of a plan, on the record."""
    step = _make_step(rank, world_size, plan, model)
    for _ in range(num_steps):
        step()


def _make_step(rank: int, world_size: int, plan: str, model: Model) -> Callable[[], Any]:
    torch.manual_seed(0)
    weights = _weights([model.width] * (model.num_layers + 1))
    x = torch.randn(model.num_rows, model.width).to(device())
    return _STEPS[plan](weights, x, rank, world_size)


def _weights(sizes: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(weight.to(device()), bias.to(device())) for weight, bias in random_weights(sizes)]


def _compute_calls(plan: str, model: Model, world_size: int) -> dict[str, Callable[[], Any]]:
    """What this rank computes in a step, without communication: its parts, and the whole.

    All layers are timed together: a layer alone would find its weights in the processor's cache.
    """
    rows = model.num_rows // (world_size if plan == "data" else MICRO_BATCHES[plan])
    inside = model.width // (world_size if plan == "tensor" else 1)
    num_layers = model.num_layers // (world_size if plan == "pipeline" else 1)
    sizes = [inside if number % 2 else model.width for number in range(num_layers + 1)]
    local = MLP.from_weights(_weights(sizes))
    x = torch.randn(rows, model.width).to(device())
    y, saved = local.forward(x)
    _, kept = local.backward_input(y, saved)

    def whole() -> None:
        local.zero_gradients()
        for _ in range(MICRO_BATCHES[plan]):
            y, saved = local.forward(x)
            _, grad_y = mean_squared_error(y, torch.zeros_like(y))
            local.backward(grad_y, saved)

    return {
        "forward": lambda: local.forward(x),
        "input": lambda: local.backward_input(y, saved),
        "weight": lambda: local.backward_weight(kept),
        "whole": whole,
    }


def _layer_seconds(
    timings: dict[str, Timing], plan: str, model: Model, world_size: int
) -> LayerSeconds:
    """One layer's share of the whole, in parts that are to each other as they were alone.

    The parts' medians add up to less than the whole's, for the same processor time: most short
    calls escape what interrupts a rank now and then, and a step does not.
    """
    parts = LayerSeconds(*(timings[name].median for name in ("forward", "input", "weight")))
    num_layers = model.num_layers // (world_size if plan == "pipeline" else 1)
    together = timings["whole"].median / MICRO_BATCHES[plan]
    return parts.times(together / parts.all / num_layers)


def _data_step(weights: list, x: torch.Tensor, rank: int, world_size: int) -> Callable[[], Any]:
    model = DataParallel(MLP.from_weights(weights), bucket_bytes=1)
    rows = x.tensor_split(world_size)[rank]

    def step() -> None:
        model.zero_gradients()
        y, saved = model.forward(rows)
        _, grad_y = mean_squared_error(y, rows, len(x))
        model.backward(grad_y, saved)

    return step


def _tensor_step(weights: list, x: torch.Tensor, rank: int, world_size: int) -> Callable[[], Any]:
    model = TensorParallelMLP(weights)

    def step() -> None:
        model.zero_gradients()
        y, saved = model.forward(x)
        _, grad_y = mean_squared_error(y, x)
        model.backward_first(grad_y, saved)

    return step


def _pipeline_step(weights: list, x: torch.Tensor, rank: int, world_size: int) -> Callable[[], Any]:
    per_stage = len(weights) // world_size
    stage = MLP.from_weights(weights[rank * per_stage : (rank + 1) * per_stage])
    back = dist.new_group() if device() == "cuda" else None  # on NCCL each direction needs its own
    m = MICRO_BATCHES["pipeline"]
    pipeline = Pipeline([stage], one_forward_one_backward(world_size, m), reverse_group=back)
    parts = cut(x, m)

    def step() -> None:
        stage.zero_gradients()
        pipeline.step(parts, parts, mean_squared_error)

    return step


_STEPS = {"data": _data_step, "tensor": _tensor_step, "pipeline": _pipeline_step}


def _one_step_bytes(run: Run, rank: int) -> int:
    """What a rank sent in its first step; the broadcast at the start left out."""
    events = itertools.takewhile(lambda e: e.op != "barrier", run.ledger.select(rank=rank))
    return sum(e.sent_bytes for e in events if e.op in ("all_reduce", "send"))
