"""Every schedule on real ranks: its step beside the paper's, its messages, its gradients.

Stages that sleep take no core, so four of them run at full speed on two: see
`pipeline_parallel.lab`. Messages, gradients and losses are real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from byhand.model.mlp import MLP, softmax_cross_entropy
from byhand.pipeline_parallel import Pipeline, cut, partition
from byhand.pipeline_parallel.lab import sleep_through
from byhand.pipeline_schedules.actions import Action, Actions, Schedule, messages, route_of
from byhand.pipeline_schedules.orders import (
    breadth_first,
    dual_pipe_v,
    gpipe,
    interleaved,
    one_forward_one_backward,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from byhand.pipeline_schedules.routes import Route, loop, there_and_back
from byhand.pipeline_schedules.search import find
from byhand.pipeline_schedules.simulation import Timeline, simulate
from byhand.runtime import launch

if TYPE_CHECKING:  # ranks import this module
    import ipywidgets
    from torch.distributed.pipelining import PipelineStage

    from byhand.figures.style import CourseFigure

Weights = list[tuple[Tensor, Tensor]]
NAMED: dict[str, Callable[[int, int], Actions]] = {
    "GPipe": gpipe,
    "1F1B": one_forward_one_backward,
    "interleaved, v 2": partial(interleaved, num_chunks=2),
    "breadth-first, v 2": partial(breadth_first, num_chunks=2),
    "ZB-H1": zero_bubble_h1,
    "ZB-H2": zero_bubble_h2,
    "ZB-V": zero_bubble_v,
    "DualPipe's V": dual_pipe_v,
}
FOUR = {name: NAMED[name] for name in ("1F1B", "interleaved, v 2", "ZB-H1", "ZB-V")}
TOLD = "GPipe", "1F1B", "interleaved, v 2", "ZB-H1", "ZB-V"  # in the lecture
ROUTES: dict[str, Callable[[int], Route]] = {
    "a line": loop,
    "a loop of 2": partial(loop, num_chunks=2),
    "a V": there_and_back,
}


def chunks_per_stage(schedule: Actions) -> int:
    """The most parts of the model that one stage keeps."""
    route = route_of(schedule)
    return max(map(route.count, route))


def on_paper(schedule: Actions) -> Timeline:
    """Simulated where a forward of a whole stage takes 1, and each half of a backward too."""
    each = 1 / chunks_per_stage(schedule)
    return simulate(schedule, each, each, each)


LETTERS = {"forward": "F", "backward": "B", "backward_input": "I", "backward_weight": "W"}


def words(order: Sequence[Action]) -> str:
    """A stage's actions, a word each: I3' is the input's half for micro-batch 3 of chunk 1."""
    return " ".join(f"{LETTERS[a.kind]}{a.micro_batch}" + "'" * a.chunk for a in order)


class Row(NamedTuple):
    """What a schedule costs: shares of the step, whole micro-batches, messages of a boundary."""

    idle: float
    idle_without_barrier: float
    held: float
    messages: int


def bill(schedule: Actions) -> Row:
    """On paper. Without a barrier a step takes its period; held: whole stages' micro-batches."""
    paper, chunks = on_paper(schedule), chunks_per_stage(schedule)
    busy = sum(span.end - span.start for span in paper.spans) / len(schedule)
    held = max(paper.peak_in_flight) / chunks
    return Row(paper.idle_fraction, 1 - busy / paper.period, held, len(list(messages(schedule))))


def real_step(schedule: Actions, seconds: float, tries: int = 1, **messages: Any) -> Timeline:
    """The fastest step of stages that sleep, recorded; a whole stage's forward takes `seconds`.

    messages: their bytes and network, as sleep_through takes them.
    """
    each = seconds / chunks_per_stage(schedule)
    steps = [sleep_through(schedule, each, each, each, **messages) for _ in range(tries)]
    return min(steps, key=lambda step: step.seconds)


def as_short(schedule: Actions) -> Schedule:
    """What `find` finds with no more than this schedule's route and memory."""
    paper, each = on_paper(schedule), 1 / chunks_per_stage(schedule)
    m = 1 + max(action.micro_batch for action in schedule[0])
    return find(route_of(schedule), m, max(paper.peak_in_flight), each, each, each)


def idle_by_memory(num_stages: int, num_micro_batches: int, most: int) -> dict[str, list[float]]:
    """By route: the idle share in percent of what `find` finds with 1, 2, ... `most` held."""
    found = {}
    for name in ("a line", "a V"):
        route = ROUTES[name](num_stages)
        chunks = len(route) // num_stages
        limits, each = [chunks * held for held in range(1, most + 1)], 1 / chunks
        schedules = [find(route, num_micro_batches, n, each, each, each) for n in limits]
        found[name] = [100 * on_paper(schedule).idle_fraction for schedule in schedules]
    return found


def chunks_of(weights: Weights, schedule: Actions, rank: int) -> list[MLP]:
    """This rank's chunks of an MLP of these weights."""
    layers, route = MLP.from_weights(weights).layers, route_of(schedule)
    parts = partition(len(layers), len(route))
    return [MLP([layers[number] for number in parts[place]]) for place in route.places(rank)]


class Trained(NamedTuple):
    """A step's loss, all gradients in the model's order, and its messages."""

    loss: float
    gradients: list[Tensor]
    messages: int


def torch_stages(weights: Weights, rank: int, num_ranks: int) -> list[PipelineStage]:
    """torch's two stages of this rank on the V, with these weights."""
    from torch.distributed.pipelining import PipelineStage

    places, device = there_and_back(num_ranks).places(rank), weights[0][0].device
    parts = [_torch_part(weights, place, 2 * num_ranks) for place in places]
    pairs = zip(parts, places, strict=True)
    return [PipelineStage(part, place, 2 * num_ranks, device) for part, place in pairs]


def _torch_part(weights: Weights, place: int, num_places: int) -> nn.Sequential:
    """One global stage's layers as modules of torch's."""
    layers: list[nn.Module] = []
    for weight, bias in weights:
        linear = nn.Linear(*weight.T.shape)
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [nn.ReLU(), linear] if layers else [linear]
    return nn.Sequential(*[layers[i] for i in partition(len(layers), num_places)[place]])


def train_once(weights: Weights, x: Tensor, labels: Tensor, schedule: Actions) -> Trained:
    """One step on real ranks; all hidden layers are equally wide."""

    def on_rank(rank: int, world_size: int) -> tuple[Tensor | None, list[list[Tensor]]]:
        """The loss, if it is known here, and each chunk's gradients."""
        chunks = chunks_of(weights, schedule, rank)
        pipeline = Pipeline(chunks, schedule, weights[0][1].shape, x.dtype)
        m = pipeline.num_micro_batches
        step = pipeline.step(cut(x, m), cut(labels, m), softmax_cross_entropy)
        return step.loss, [chunk.gradients() for chunk in chunks]

    run, route = launch(on_rank, len(schedule)), route_of(schedule)
    by_place = sorted((place, rank, chunk) for (rank, chunk), place in route.place.items())
    gradients = [g for _, rank, chunk in by_place for g in run.results[rank][1][chunk]]
    return Trained(float(run.results[route[-1]][0]), gradients, run.ledger.count("send"))


def schedule_explorer(
    which: str = "found on a V",
    num_stages: int = 4,
    num_micro_batches: int = 8,
    held: int | None = None,
) -> ipywidgets.VBox:
    """Choose a schedule, or a route and what a stage may hold; see the simulated timeline.

    A forward of a whole stage takes 1, the halves of its backward together 2.
    """
    from byhand.tools.explorer import explorer, menu, slider

    choice = menu("schedule", [*TOLD, *(f"found on {route}" for route in ROUTES)], which)
    stages, m = slider("stages", num_stages, 1, 8), slider("batches", num_micro_batches, 1, 16)
    room = slider("may hold", held or num_stages, 1, 16)
    weight, send = slider("weight half", 1.0, 0, 2), slider("message", 0.0, 0, 2)
    few: dict[str, tuple] = {"stages": (), "batches": (), "may hold": (2, 4, 6)}
    few |= {"weight half": (0.5, 1.0), "message": (0.0, 0.5)}
    return explorer([[choice, stages, m], [room, weight, send]], draw_schedule, few)


def draw_schedule(
    which: str, num_stages: int, num_micro_batches: int, held: int, weight: float, send: float
) -> tuple[CourseFigure, str]:
    """A simulated step's picture, and a sentence; `held` counts where the schedule is found."""
    from byhand.figures import schedule_timeline

    if which in NAMED:
        schedule = NAMED[which](num_stages, num_micro_batches)
        chunks = chunks_per_stage(schedule)
        costs = 1 / chunks, (2 - weight) / chunks, weight / chunks
    else:
        route = ROUTES[which.removeprefix("found on ")](num_stages)
        chunks = len(route) // num_stages
        costs = 1 / chunks, (2 - weight) / chunks, weight / chunks
        schedule = find(route, num_micro_batches, chunks * held, *costs, send=send)
    timeline = simulate(schedule, *costs, send=send)
    least = max(timeline.peak_in_flight) / chunks
    text = (
        f"The step takes {timeline.seconds:.4g} turns. A stage holds up to {least:g} micro-batches."
    )
    return schedule_timeline(timeline, unit="turns"), text


def routes_picture(num_stages: int) -> CourseFigure:
    """A line, a loop of two chunks, and a V: which stage has which part of the model."""
    from byhand.figures import pen, style

    wide, tall = 0.27, 0.32  # inches from part to part, and from stage to stage
    title = "Which stage has which part of the model"
    with style.drawing(0.7 + tall * num_stages, title) as (figure, axes):
        for stage in range(num_stages):
            pen.small(axes, (0.1, 0.85 + tall * stage), f"stage {stage}", ha="left")
        start = 0.95
        for name, make in ROUTES.items():
            route = make(num_stages)
            across = [start + wide * part for part in range(len(route))]
            down = [0.85 + tall * stage for stage in route]
            axes.plot(across, down, color=style.COMMUNICATION, lw=2, zorder=0)
            for part, middle in enumerate(zip(across, down, strict=True)):
                colour = style.COMPUTE if part < num_stages else style.tint(style.COMPUTE, 0.4)
                corner = middle[0] - 0.11, middle[1] - 0.11
                pen.box(axes, corner, (0.22, 0.22), colour)
                pen.small(axes, middle, str(part), color=style.readable_on(colour))
            pen.small(axes, (start - 0.11, 0.55), name.removesuffix(" of 2"), ha="left")
            start = across[-1] + 0.55
    return figure
