"""One data-parallel training step on real ranks, watched: what hides behind backward.

Its layers sleep: see byhand.tools.asleep. The gradients are real, and travel over a slow link.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from byhand.data_parallel.replicas import DataParallel, all_reduce_gradients
from byhand.model.mlp import MLP
from byhand.runtime import Run, VirtualNetwork, launch
from byhand.tools.asleep import LAYER_BYTES, Sleep, slow_link, stretches
from byhand.tools.asleep import LINK as LINK
from byhand.words import counted

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    import ipywidgets

    from byhand.figures import Span
    from byhand.figures.style import CourseFigure

NUM_LAYERS = 6
FORWARD, BACKWARD = 0.012, 0.024  # seconds a layer
NAIVE = 0  # as bucket_bytes: every gradient by itself, after backward


@dataclass(repr=False)
class WatchedSteps:
    """The steps of a run; steps[number][rank] are the spans that `byhand.figures.lanes` draws.

    They begin with forward, backward and standing still.
    """

    steps: list[list[list[Span]]]
    run: Run

    @property
    def seconds(self) -> list[float]:
        """Of each step: from its first rank's start to its last rank's end."""
        return [max(s[2].end for s in step) - min(s[0].start for s in step) for step in self.steps]

    @property
    def shares_still(self) -> list[float]:
        """Of each step: the share of it that the ranks stand still after backward."""
        still = [sum(s[2].end - s[2].start for s in step) for step in self.steps]
        whole = [sum(s[2].end - s[0].start for s in step) for step in self.steps]
        return [part / all_of_it for part, all_of_it in zip(still, whole, strict=True)]

    def __repr__(self) -> str:
        each = self.run.ledger.count("all_reduce", 0) // (len(self.steps) + 1)  # one step before
        calls = counted(each, "all-reduce")
        return f"{calls} a step, {1e3 * median(self.seconds):.1f} ms (median)"

    def _repr_svg_(self) -> str:
        return self.picture()._repr_svg_()

    def picture(self, title: str = "", axis_seconds: float | None = None) -> CourseFigure:
        """The step that other programs disturbed least; axis_seconds: how far its axis reaches."""
        from byhand.figures import lanes

        number = self.seconds.index(min(self.seconds))
        still, step = self.shares_still[number], self.steps[number]
        zero = min(spans[0].start for spans in step)
        rows = {
            f"rank {rank}": [s._replace(start=s.start - zero, end=s.end - zero) for s in spans]
            for rank, spans in enumerate(step)
        }
        told = f"The ranks stand still {still:.0%} of the step"
        return lanes(rows, title or told, axis_seconds)


def watch(
    bucket_bytes: int,
    world_size: int = 2,
    num_steps: int = 3,
    network: VirtualNetwork | None = None,
) -> WatchedSteps:
    """Take `num_steps` steps with buckets of this size (NAIVE: none) on fresh ranks.

    The model has six layers that sleep, with 0.5 MB of gradients each.

    Raises:
        ValueError: bucket_bytes or num_steps is negative, or there is no rank.
    """
    if bucket_bytes < 0 or num_steps < 1:
        steps = counted(num_steps, "step")
        raise ValueError(f"{steps} with buckets of {bucket_bytes} bytes: not possible")

    def on_rank(rank: int, world_size: int) -> list[list[float]]:
        """The clock at the four edges of each step, the first of which connects the ranks."""
        layers = [Sleep(FORWARD, BACKWARD, num_bytes=LAYER_BYTES) for _ in range(NUM_LAYERS)]
        model, marks = DataParallel(MLP(layers), bucket_bytes=bucket_bytes or 1), []
        for _ in range(num_steps + 1):
            model.zero_gradients()
            dist.barrier()
            edges = [time.monotonic()]
            y, saved = model.forward(torch.zeros(1))
            edges.append(time.monotonic())
            model.backward(y, saved, synchronise=bucket_bytes != NAIVE)
            edges.append(time.monotonic())
            if bucket_bytes == NAIVE:
                all_reduce_gradients(model.gradients())
            marks.append([*edges, time.monotonic()])
        return marks

    run = launch(on_rank, world_size, network=network)
    return WatchedSteps([_step(run, number) for number in range(num_steps)], run)


def _step(run: Run, number: int) -> list[list[Span]]:
    """Every rank's step of this number, on the ledger's clock: each begins as its barrier ends."""
    from byhand.figures import Span

    calls, moments = [], []
    for rank, steps in enumerate(run.results):
        begin, _, events = stretches(run, rank)[number + 2]  # after the barrier of the step before
        marks = steps[number + 1]
        moments.append([begin + moment - marks[0] for moment in marks])
        calls.append([event for event in events if event.op == "all_reduce"])
    met = [max(event.start for event in together) for together in zip(*calls, strict=True)]
    steps = []
    for (start, middle, end, waited), mine in zip(moments, calls, strict=True):
        # Backward with buckets waits inside: its computing ends where the last bucket is launched.
        computed = min(end, mine[-1].start) if mine else end
        spans = [Span("forward", "", start, middle), Span("backward", "", middle, computed)]
        spans.append(Span("standing still", "", computed, waited))
        for bucket, (event, moment) in enumerate(zip(mine, met, strict=True)):
            left = min(moment, event.end)
            spans.append(Span("waiting for another rank", "", event.start, left))
            spans.append(Span("bucket in flight", bucket, left, event.end))
        steps.append(spans)
    return steps


BUCKETS = {
    "none: each tensor by itself, after backward": NAIVE,
    **{f"{n} × 0.5 MB": n * LAYER_BYTES for n in range(1, NUM_LAYERS)},
    "one bucket for all": NUM_LAYERS * LAYER_BYTES,
}


def bucket_explorer(bucket_bytes: int = LAYER_BYTES, world_size: int = 2) -> ipywidgets.VBox:
    """Choose the size of the buckets and the number of ranks; see one real training step.

    Six layers that sleep, 0.5 MB of gradients each, and slow links where a network can be laid.
    """
    from byhand.tools.explorer import explorer, menu, slider

    size = menu("bucket", BUCKETS.items(), bucket_bytes)
    return explorer([[size, slider("ranks", world_size, 1, 4)]], draw_buckets)


def draw_buckets(bucket_bytes: int, world_size: int) -> tuple[CourseFigure, str]:
    """A step's picture, and what it took."""
    steps = watch(bucket_bytes, world_size, network=slow_link(world_size))
    return steps.picture(), repr(steps)
