"""One data-parallel training step on real ranks, watched: what hides behind backward.

Small enough for a laptop, and large enough that a bucket travels for longer than a call costs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from byhand.data_parallel.replicas import DataParallel, all_reduce_gradients, assign_buckets
from byhand.model.mlp import MLP, random_weights, softmax_cross_entropy
from byhand.runtime import Run, launch

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    import ipywidgets

    from byhand.figures.overlap import Step
    from byhand.figures.style import CourseFigure

WIDTH, NUM_LAYERS, NUM_ROWS = 512, 6, 128
LAYER_BYTES = 4 * (WIDTH * WIDTH + WIDTH)
NAIVE = 0  # as bucket_bytes: every gradient by itself, after backward


@dataclass(repr=False)
class WatchedSteps:
    """The steps of a run; steps[number][rank] is what `byhand.figures.overlap` draws.

    buckets: lists of layers; empty for NAIVE.
    """

    bucket_bytes: int
    buckets: list[list[int]]
    steps: list[list[Step]]
    run: Run

    @property
    def seconds(self) -> list[float]:
        """Of each step: from its first rank's start to its last rank's end."""
        return [max(s.end for s in step) - min(s.start for s in step) for step in self.steps]

    @property
    def shares_still(self) -> list[float]:
        """Of each step: the share of it that the ranks stand still after backward."""
        from byhand.figures.overlap import standing_still

        return [standing_still(step) for step in self.steps]

    @property
    def fastest(self) -> list[Step]:
        """The step that other programs disturbed least."""
        return min(zip(self.seconds, self.steps, strict=True))[1]

    def __repr__(self) -> str:
        calls = len(self.fastest[0].flights)
        return f"{calls} all-reduces a step, {1e3 * median(self.seconds):.1f} ms (median)"

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.picture()._repr_png_()

    def picture(self, title: str | None = None) -> CourseFigure:
        """The fastest step, drawn."""
        from byhand.figures import overlap

        return overlap(self.fastest, title)


def watch(
    bucket_bytes: int = 1 << 20, world_size: int = 2, num_steps: int = 8, backend: str = "auto"
) -> WatchedSteps:
    """Take `num_steps` steps with buckets of this size (NAIVE: none) on fresh ranks.

    The model has six layers of 512 × 512, 1.05 MB of gradients each; each rank has 128 rows.

    Raises:
        ValueError: bucket_bytes or num_steps is negative, or there is no rank.
    """
    if bucket_bytes < 0 or num_steps < 1:
        raise ValueError(f"{num_steps} steps with buckets of {bucket_bytes} bytes: not possible")
    run = launch(_steps, world_size, (bucket_bytes, num_steps), backend=backend)
    layers = [LAYER_BYTES if i % 2 == 0 else 0 for i in range(2 * NUM_LAYERS - 1)]
    buckets = assign_buckets(layers, bucket_bytes) if bucket_bytes else []
    steps = [_step(run, number) for number in range(num_steps)]
    return WatchedSteps(bucket_bytes, buckets, steps, run)


def _steps(rank: int, world_size: int, bucket_bytes: int, num_steps: int) -> list[list[float]]:
    """The clock at the begin, and at the four edges of each step; one step before is not told."""
    marks = [[time.monotonic()]]
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(NUM_ROWS, WIDTH, generator=generator)
    labels = torch.randint(WIDTH, (NUM_ROWS,), generator=generator)
    weights = random_weights([WIDTH] * (NUM_LAYERS + 1))
    model = DataParallel(MLP.from_weights(weights), bucket_bytes=bucket_bytes or 1)
    for _ in range(num_steps + 1):
        model.zero_gradients()
        dist.barrier()
        edges = [time.monotonic()]
        logits, saved = model.forward(x)
        _, grad_logits = softmax_cross_entropy(logits, labels, world_size * NUM_ROWS)
        edges.append(time.monotonic())
        model.backward(grad_logits, saved, synchronise=bucket_bytes != NAIVE)
        edges.append(time.monotonic())
        if bucket_bytes == NAIVE:
            all_reduce_gradients(model.gradients())
        marks.append([*edges, time.monotonic()])
    return [marks[0], *marks[2:]]


def _step(run: Run, number: int) -> list[Step]:
    """Every rank's step of this number, on the clock of the ledger."""
    from byhand.figures.overlap import Flight, Step

    calls, moments = [], []
    for rank, ((begun,), *marks) in enumerate(run.results):
        shift = run.spans[rank][0] - begun
        moments.append([moment + shift for moment in marks[number]])
        events = run.ledger.select("all_reduce", rank)
        per_step = len(events) // (len(marks) + 1)
        calls.append(events[(number + 1) * per_step : (number + 2) * per_step])
    met = [max(event.start for event in together) for together in zip(*calls, strict=True)]
    steps = []
    for (start, forward_end, backward_end, end), mine in zip(moments, calls, strict=True):
        flights = [
            Flight(bucket, event.start, max(event.start, moment), event.end)
            for bucket, (event, moment) in enumerate(zip(mine, met, strict=True))
        ]
        # Backward with buckets waits inside: its computing ends where the last bucket is launched.
        computed = min(backward_end, mine[-1].start) if mine else backward_end
        steps.append(Step(start, forward_end, computed, end, tuple(flights)))
    return steps


BUCKETS = {
    "none: each tensor by itself, after backward": NAIVE,
    **{f"{n} × 1.05 MB": n * LAYER_BYTES for n in range(1, NUM_LAYERS)},
    "one bucket for all": NUM_LAYERS * LAYER_BYTES,
}


def bucket_explorer(bucket_bytes: int = LAYER_BYTES, world_size: int = 2) -> ipywidgets.VBox:
    """Choose the size of the buckets and the number of ranks; see one real training step.

    The model has six layers with 1.05 MB of gradients each. What goes wrong is shown as a sentence
    in the picture's place.
    """
    import ipywidgets

    from byhand.tools.explorer import explorer, slider

    size = ipywidgets.Dropdown(
        options=list(BUCKETS.items()), value=bucket_bytes, description="bucket"
    )
    return explorer([[size, slider("ranks", world_size, 1, 4)]], draw_buckets)


def draw_buckets(bucket_bytes: int, world_size: int) -> tuple[CourseFigure, str]:
    """A step's picture, and what it took."""
    steps = watch(bucket_bytes, world_size)
    return steps.picture(), repr(steps)
