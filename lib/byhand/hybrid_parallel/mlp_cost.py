"""One training step of an MLP, predicted: what each rank sends, and how long the step takes. Pure.

The model is L equal layers; a layer's compute is measured, and communication comes from a fitted
alpha and beta. What overlaps is laid out as the library's modules do it:

    data      a bucket's all-reduce leaves when backward has passed its last layer; buckets follow
              each other; the step ends when backward and the last bucket have
    tensor    an all-reduce after each pair of layers forward, one backward for each pair but the
              first, which hides behind the gradient of one weight
    pipeline  a micro-batch's message leaves when it is made, and follows those before it on the
              link between its two stages

S bytes of parameters, A bytes of one layer's output for the whole batch, P ranks. Sent per rank:
data 2(P-1)/P · S; tensor (L - 1) · 2(P-1)/P · A; pipeline A for each neighbour.
Simplified: the loss and the filling with zeros count as the layers' compute; there is no
optimizer. Compute and communication slow each other not at all, or, with overlap=False, wholly:
where ranks keep all cores busy, the copying and adding of an all-reduce takes a core from them, and
hiding it saves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from byhand.pipeline_schedules.actions import Schedule, messages
from byhand.pipeline_schedules.simulation import simulate

Seconds = Callable[[float], float]  # of a call, by its number of bytes


@dataclass(frozen=True)
class LayerSeconds:
    """The compute of one layer with its activation: forward, and the two halves of backward."""

    forward: float
    backward_input: float
    backward_weight: float

    @property
    def all(self) -> float:
        """Forward and backward."""
        return self.forward + self.backward_input + self.backward_weight

    def times(self, number: float) -> LayerSeconds:
        """That many layers, or that part of the rows."""
        return LayerSeconds(
            self.forward * number, self.backward_input * number, self.backward_weight * number
        )


@dataclass(frozen=True)
class StepCost:
    """A step: its seconds, those of one rank's compute in it, and the bytes each rank sends."""

    seconds: float
    compute_seconds: float
    sent_bytes: tuple[float, ...]


def data_parallel_step(
    layer: LayerSeconds,
    buckets: Sequence[Sequence[int]],
    layer_bytes: float,
    num_ranks: int,
    all_reduce: Seconds,
    overlap: bool = True,
) -> StepCost:
    """Forward and backward with the gradients' all-reduces.

    layer: for this rank's rows. buckets: lists of layer numbers, the last layer first, as
    data_parallel.assign_buckets gives them. layer_bytes: the parameters of one layer.
    """
    num_layers = sum(map(len, buckets))
    now = num_layers * layer.forward
    backward = layer.backward_input + layer.backward_weight
    wire = now
    for bucket in buckets:
        now += sum(backward if number > 0 else layer.backward_weight for number in bucket)
        one = all_reduce(len(bucket) * layer_bytes) if num_ranks > 1 else 0.0
        wire = max(wire, now) + one
        now += 0.0 if overlap else one
    compute = num_layers * layer.all - layer.backward_input
    sent = 2 * (num_ranks - 1) / num_ranks * num_layers * layer_bytes
    return StepCost(max(wire, now), compute, (sent,) * num_ranks)


def tensor_parallel_step(
    layer: LayerSeconds,
    num_pairs: int,
    output_bytes: float,
    num_ranks: int,
    all_reduce: Seconds,
    overlap: bool = True,
) -> StepCost:
    """Forward and backward of pairs of layers, the first split by column, the second by row.

    layer: this rank's share of one, by column or by row. output_bytes: a pair's, for the batch.
    """
    one = all_reduce(output_bytes) if num_ranks > 1 else 0.0
    row = layer.backward_input + layer.backward_weight
    behind = max(layer.backward_weight, one) if overlap else layer.backward_weight + one
    hidden = layer.backward_input + behind
    forward = num_pairs * (2 * layer.forward + one)
    backward = num_pairs * row + (num_pairs - 1) * hidden + layer.backward_weight
    compute = 2 * num_pairs * layer.all - layer.backward_input
    sent = (2 * num_pairs - 1) * 2 * (num_ranks - 1) / num_ranks * output_bytes
    return StepCost(forward + backward, compute, (sent,) * num_ranks)


def pipeline_step(
    schedule: Schedule, stage: LayerSeconds, message_bytes: float, send: Seconds
) -> StepCost:
    """One step of a schedule whose stages all compute equally long.

    stage: all of a stage's layers, for one micro-batch. message_bytes: of one micro-batch.
    """
    halves = stage.forward, stage.backward_input, stage.backward_weight
    timeline = simulate(schedule, *halves, send=send(message_bytes), shared_links=True)
    sent = [0.0] * len(schedule)
    for product, _ in messages(schedule):
        sent[product.stage] += message_bytes
    return StepCost(timeline.seconds, timeline.seconds - min(timeline.idle_seconds), tuple(sent))
