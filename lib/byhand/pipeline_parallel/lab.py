"""Pipelines on real ranks: stages that sleep, or hold activations; and schedules in your hands.

What is measured of stages that sleep is the schedule and the messages: see byhand.tools.asleep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from byhand.model.mlp import GELU, MLP, mean_squared_error, random_weights
from byhand.pipeline_parallel.worker import Pipeline, Step, timeline
from byhand.pipeline_schedules import (
    Timeline,
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    zero_bubble_h1,
)
from byhand.pipeline_schedules.actions import Actions, route_of
from byhand.pipeline_schedules.simulation import Seconds, seconds_by_kind
from byhand.runtime import VirtualNetwork, launch
from byhand.tools.asleep import Sleep

if TYPE_CHECKING:  # ranks import this module
    import ipywidgets
    from matplotlib.figure import Figure

    from byhand.figures.style import CourseFigure


def sleep_through(
    schedule: Actions,
    forward: Seconds = 0.01,
    backward_input: Seconds = 0.01,
    backward_weight: Seconds = 0.01,
    message_bytes: int = 8192,
    network: VirtualNetwork | None = None,
    num_steps: int = 1,
    barrier: bool = False,
) -> Timeline:
    """The recorded timeline of a step whose stages sleep these seconds per forward, and so on.

    As in `simulate`, they are those of one global stage. A rank is a stage. With a `barrier`, all
    ranks add a number up after each of the steps, as they must to know the gradient's norm.
    """
    route = route_of(schedule)
    by_kind = seconds_by_kind(len(route), forward, backward_input, backward_weight)
    kinds = ("forward", "backward_input", "backward_weight")
    through, back, weight = (by_kind[kind] for kind in kinds)

    def on_rank(rank: int, world_size: int) -> Step:
        """This stage's spans."""
        width = message_bytes // 4
        pipeline = Pipeline([Sleep(0, 0, 0) for _ in route.places(rank)], schedule, (width,))
        inputs, spans = [torch.zeros(1, width)] * pipeline.num_micro_batches, []
        pipeline.step(inputs, inputs, mean_squared_error)  # first messages are slow: not recorded
        places = route.places(rank)
        pipeline.chunks = [Sleep(through[g], back[g], weight[g]) for g in places]
        dist.barrier()
        for _ in range(num_steps):
            spans += pipeline.step(inputs, inputs, mean_squared_error).spans
            if barrier:
                dist.all_reduce(torch.zeros(1))
        return Step(None, spans)

    return timeline(launch(on_rank, len(schedule), network=network).results)


def held_activations(
    make: Callable[[int, int], Actions], num_stages: int, num_micro_batches: int
) -> tuple[list[int], list[int]]:
    """Bytes of activations that each stage holds at most: predicted, and counted on real ranks.

    A stage is 16 -> 512 -> 16 with a GELU between, a micro-batch 64 rows. Counted is what many
    micro-batches hold more than one, and what one saves.
    """

    def on_rank(rank: int, world_size: int, schedule: Actions) -> None:
        """A step."""
        stage = MLP.from_weights(random_weights([16, 512, 16]), GELU)
        pipeline = Pipeline([stage], schedule, (16,))
        inputs = [torch.zeros(64, 16)] * pipeline.num_micro_batches
        pipeline.step(inputs, inputs, mean_squared_error)

    saved = 64 * (16 + 2 * 512) * 4  # x, and both sides of the GELU
    schedules = [make(num_stages, m) for m in (1, num_micro_batches)]
    runs = [launch(on_rank, num_stages, (each,), memory=True) for each in schedules]
    pairs = zip(*(run.peak_bytes for run in runs), strict=True)
    predicted = [held * saved for held in simulate(schedules[1]).peak_in_flight]
    return predicted, [many - one + saved for one, many in pairs]


SCHEDULES: dict[str, Callable[[int, int], Timeline]] = {
    "GPipe": lambda p, m: simulate(gpipe(p, m)),
    "1F1B": lambda p, m: simulate(one_forward_one_backward(p, m)),
    "interleaved 1F1B, 2 chunks": lambda p, m: simulate(interleaved(p, m, 2), 0.5, 0.5, 0.5),
    "zero bubble (ZB-H1)": lambda p, m: simulate(zero_bubble_h1(p, m)),
}


def pipeline_explorer(
    schedule: str = "1F1B", num_stages: int = 4, num_micro_batches: int = 8
) -> ipywidgets.VBox:
    """Choose a schedule, stages and micro-batches; see the simulated timeline, and what is held.

    A forward takes 1, each half of a backward too.
    """
    from byhand.tools.explorer import explorer, menu, slider

    which = menu("schedule", SCHEDULES, schedule)
    stages = slider("stages", num_stages, 1, 8)
    micro_batches = slider("micro-batches", num_micro_batches, 1, 32)
    few = {"stages": (2, 4, 8), "micro-batches": (4, 8, 16)}
    return explorer([[which, stages, micro_batches]], draw_pipeline, few)


def draw_pipeline(
    schedule: str, num_stages: int, num_micro_batches: int
) -> tuple[CourseFigure, str]:
    """A simulated step's picture, and a sentence."""
    from byhand.figures import schedule_timeline

    timeline = SCHEDULES[schedule](num_stages, num_micro_batches)
    held = max(timeline.peak_in_flight) / (2 if "chunks" in schedule else 1)
    took = f"The step takes the time of {timeline.seconds:g} forwards"
    text = f"{took}; a stage holds up to {held:g} micro-batches' activations."
    return schedule_timeline(timeline, unit="forwards"), text


def ends_picture(costs: Sequence[float], cuts: Sequence[Sequence[range]]) -> Figure:
    """Each stage's work under each cut of the layers, of which the last is the head."""
    from byhand.figures import style
    from byhand.figures.bars import Line, stacked

    equal, head, panels, longer = sum(costs) / len(cuts[0]), len(costs) - 1, {}, []
    hues = {"blocks": style.COMPUTE, "head": style.COMMUNICATION}
    for parts in cuts:
        dealt = [[i for i in part if i < head] for part in parts]
        rows = {}
        for number, (part, blocks) in enumerate(zip(parts, dealt, strict=True)):
            sizes = sum(costs[i] for i in blocks), costs[head] if head in part else 0.0
            pairs = zip(hues.items(), sizes, strict=True)
            bars = [((f"{name} {n:.3g}", name), n, hue) for (name, hue), n in pairs]
            rows[f"stage {number}"] = [Line(bars, f"{sum(sizes):.3g}")]
        longer.append(max(sum(costs[i] for i in part) for part in parts) / equal - 1)
        heading = f"{', '.join(str(len(blocks)) for blocks in dealt)} and the head"
        panels[f"{heading}: turns are {longer[-1]:.0%} longer"] = rows
    title = f"A turn is {longer[-1]:.0%} longer than equal work, and not {longer[0]:.0%}"
    figure = stacked(panels, title, "work, in blocks; dotted: equal work", {})
    for axes in figure.axes:
        axes.axvline(equal, color=style.INK, lw=1, ls=":")
    return figure


def torch_layers(
    weights: Sequence[tuple[torch.Tensor, torch.Tensor]], numbers: Sequence[int]
) -> torch.nn.Sequential:
    """Those of torch's own linear layers, with ReLUs between them, that have these numbers."""
    layers: list[torch.nn.Module] = []
    for weight, bias in weights:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = weight, bias
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*(layers[number] for number in numbers))
