"""What lecture 05 runs and draws: a data-parallel step, watched, and training with mistakes in it.

The watched step's layers sleep: see byhand.tools.asleep. Its gradients are real, and travel over a
slow link.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from byhand.data_parallel.hooks import GradientHooks
from byhand.data_parallel.replicas import (
    DataParallel,
    all_reduce_gradients,
    all_reduce_gradients_flat,
    assign_buckets,
)
from byhand.model.digits import Digits
from byhand.model.mlp import MLP, random_weights, softmax_cross_entropy
from byhand.model.optimizers import AdamW
from byhand.runtime import Run, VirtualNetwork, launch
from byhand.tools.asleep import LAYER_BYTES, Sleep, sleep, stretches
from byhand.tools.asleep import LINK as LINK
from byhand.words import counted

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from matplotlib.figure import Figure

    from byhand.figures import Span
    from byhand.figures.style import CourseFigure

NUM_LAYERS = 6
FORWARD, BACKWARD = 0.015, 0.030  # seconds a layer
WAITING = "waiting for another rank"  # a bucket, before it travels
NAIVE = 0  # as bucket_bytes: every gradient by itself, after backward
STILL = 1 + NUM_LAYERS  # which span of a step: after forward, and the backward of each layer


@dataclass(repr=False)
class WatchedSteps:
    """The steps of a run; steps[number][rank] are the spans that `byhand.figures.lanes` draws.

    They begin with forward, backward of each layer, the last one first, and standing still.
    """

    steps: list[list[list[Span]]]
    run: Run

    @property
    def seconds(self) -> list[float]:
        """Of each step: from its first rank's start to its last rank's end."""
        lasts = [max(spans[STILL].end for spans in step) for step in self.steps]
        begins = [min(spans[0].start for spans in step) for step in self.steps]
        return [last - begin for last, begin in zip(lasts, begins, strict=True)]

    @property
    def shares_still(self) -> list[float]:
        """Of each step: the share of it that the ranks stand still after backward."""
        still = [sum(s[STILL].end - s[STILL].start for s in step) for step in self.steps]
        whole = [sum(s[STILL].end - s[0].start for s in step) for step in self.steps]
        return [part / all_of_it for part, all_of_it in zip(still, whole, strict=True)]

    def __repr__(self) -> str:
        each = self.run.ledger.count("all_reduce", 0) // (len(self.steps) + 1)  # one step before
        calls = counted(each, "all-reduce")
        return f"{calls} a step, {1e3 * median(self.seconds):.1f} ms (median)"

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()

    def picture(self, title: str = "") -> CourseFigure:
        """The fastest step."""
        from byhand.figures import lanes

        rows = {f"rank {rank}": _seen(spans) for rank, spans in enumerate(self.fastest)}
        told = f"The ranks stand still {self.still:.0%} of the step"
        return lanes(rows, title or told)

    @property
    def fastest(self) -> list[list[Span]]:
        """The step that other programs disturbed least, from 0 on."""
        step = self.steps[self.seconds.index(min(self.seconds))]
        zero = min(spans[0].start for spans in step)
        return [[s._replace(start=s.start - zero, end=s.end - zero) for s in own] for own in step]

    @property
    def milliseconds(self) -> float:
        """Of the fastest step."""
        return 1e3 * min(self.seconds)

    @property
    def still(self) -> float:
        """The share of the fastest step that the ranks stand still."""
        return self.shares_still[self.seconds.index(min(self.seconds))]


def watch(
    bucket_bytes: int,
    world_size: int = 2,
    num_steps: int = 3,
    network: VirtualNetwork | None = None,
    share: float = 1.0,
    way: str = "loop",
) -> WatchedSteps:
    """Take `num_steps` steps with buckets of this size (NAIVE: none) on fresh ranks.

    The model has six layers that sleep, with 0.5 MB of gradients each. share: of the tokens, and so
    of the time that a layer sleeps. way: "loop", the library's DataParallel; or an nn.Module under
    GradientHooks, "hooks", or under torch's own, "ddp".

    Raises:
        ValueError: bucket_bytes or num_steps is negative, or there is no rank.
    """
    if bucket_bytes < 0 or num_steps < 1:
        steps = counted(num_steps, "step")
        raise ValueError(f"{steps} with buckets of {bucket_bytes} bytes: not possible")
    make, seconds = _WAYS[way], (share * FORWARD, share * BACKWARD)

    def on_rank(rank: int, world_size: int) -> list[list[float]]:
        """The clock at the edges of each step, the first of which connects the ranks.

        They are: its begin, forward's end, each layer's in backward, backward's, and the step's.
        """
        through: list[float] = []
        step, edges = make(bucket_bytes, seconds, through), []
        for _ in range(num_steps + 1):
            through.clear()
            begin, middle, end, waited = [time.monotonic() for _ in step()]
            edges.append([begin, middle, *through, end, waited])
        return edges

    run = launch(on_rank, world_size, network=network)
    return WatchedSteps([_step(run, number, bucket_bytes) for number in range(num_steps)], run)


Step = Callable[[], Iterator[None]]
Seconds = tuple[float, float]  # of a layer's forward and backward


@dataclass(eq=False)
class _Noted(Sleep):
    """tools.asleep's layer, which notes when its backward is through."""

    through: list[float] = field(default_factory=list)

    def backward_weight(self, kept: None) -> None:
        """Nothing, in no time."""
        self.through.append(time.monotonic())


def _by_layers(bucket_bytes: int, seconds: Seconds, through: list[float]) -> Step:
    """A step of DataParallel, which stops at its begin, after forward, backward, and at its end."""
    layers = [_Noted(*seconds, 0.0, LAYER_BYTES, through) for _ in range(NUM_LAYERS)]
    model = DataParallel(MLP(layers), bucket_bytes=bucket_bytes or 1)

    def step() -> Iterator[None]:
        """One step, in its four stretches."""
        model.zero_gradients()
        dist.barrier()
        yield
        y, saved = model.forward(torch.zeros(1))
        yield
        model.backward(y, saved, synchronise=bucket_bytes != NAIVE)
        yield
        if bucket_bytes == NAIVE:
            all_reduce_gradients(model.gradients())
        yield

    return step


class _Slept(torch.autograd.Function):
    """x -> x, some seconds later; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, seconds: Seconds, through: list) -> Tensor:
        ctx.like, ctx.seconds, ctx.through = torch.zeros_like(weight), seconds[1], through
        sleep(seconds[0])
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor, Tensor, None, None]:
        sleep(ctx.seconds)
        ctx.through.append(time.monotonic())
        return grad_y, ctx.like, None, None


class Asleep(nn.Module):
    """tools.asleep's layer for autograd."""

    def __init__(self, seconds: Seconds, through: list[float]):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(LAYER_BYTES // 4))
        self.seconds, self.through = seconds, through

    def forward(self, x: Tensor) -> Tensor:
        """x -> x."""
        return _Slept.apply(x, self.weight, self.seconds, self.through)


def _by_hooks(bucket_bytes: int, seconds: Seconds, through: list[float]) -> Step:
    """The same step of an nn.Module, under GradientHooks."""
    module = nn.Sequential(*(Asleep(seconds, through) for _ in range(NUM_LAYERS)))
    hooks = GradientHooks(module, bucket_bytes)

    def step() -> Iterator[None]:
        """One step, in its four stretches."""
        module.zero_grad()
        dist.barrier()
        yield
        y = module(torch.zeros(1))
        yield
        y.sum().backward()
        yield
        hooks.finish()
        yield

    return step


def _by_ddp(bucket_bytes: int, seconds: Seconds, through: list[float]) -> Step:
    """The same step of an nn.Module in DistributedDataParallel, which waits within backward."""
    module = nn.Sequential(*(Asleep(seconds, through) for _ in range(NUM_LAYERS)))
    model = DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / 2**20)

    def step() -> Iterator[None]:
        """One step, in its stretches."""
        model.zero_grad()
        dist.barrier()
        yield
        y = model(torch.zeros(1))
        yield
        y.sum().backward()
        yield
        yield

    return step


_WAYS = {"loop": _by_layers, "hooks": _by_hooks, "ddp": _by_ddp}


def on_paper(layers_a_bucket: int, share: float = 1.0) -> list[Span]:
    """A step as it should go: a bucket leaves when it is full and the link is free.

    share: of the tokens, as for `watch`.
    """
    from byhand.figures import Span

    edges = [share * (NUM_LAYERS * FORWARD + n * BACKWARD) for n in range(NUM_LAYERS + 1)]
    spans, travel = [Span("forward", "", 0.0, edges[0]), *_layers(edges)], []
    free = 0.0
    for bucket in _buckets(layers_a_bucket * LAYER_BYTES):
        left = max(edges[NUM_LAYERS - bucket[-1]], free)
        free = left + len(bucket) * LAYER_BYTES / LINK
        travel.append(Span("message in flight", _name(bucket), left, free))
    return [*spans, Span("standing still", "", edges[-1], free), *travel]


def beside(rows: Mapping[str, WatchedSteps | list[Span]], title: str) -> Figure:
    """Steps below each other, a row a name, from 0 on: rank 0's fastest of a run, or on paper."""
    from byhand.figures import lanes

    drawn = {}
    for name, row in rows.items():
        spans = row.fastest[0] if isinstance(row, WatchedSteps) else row
        took = row.milliseconds if isinstance(row, WatchedSteps) else 1e3 * spans[STILL].end
        zero = spans[0].start  # its rank may have begun a little after the other
        moved = [s._replace(start=s.start - zero, end=s.end - zero) for s in spans]
        drawn[f"{name}: {took:.0f} ms"] = _seen(moved)
    return lanes(drawn, title)


def _seen(spans: list[Span]) -> list[Span]:
    """Those that are drawn: a bucket's way begins where all ranks have sent it."""
    return [span for span in spans if span.kind != WAITING]


def _layers(edges: list[float]) -> list[Span]:
    """Backward of each layer, the last one first, between these times."""
    from byhand.figures import Span

    numbers = reversed(range(NUM_LAYERS))
    pairs = zip(numbers, pairwise(edges), strict=True)
    return [Span("backward", number, start, end) for number, (start, end) in pairs]


def _buckets(bucket_bytes: int) -> list[list[int]]:
    return assign_buckets([LAYER_BYTES] * NUM_LAYERS, bucket_bytes)


def _name(bucket: list[int]) -> str:
    """Its layers."""
    return " ".join(map(str, bucket))


def _step(run: Run, number: int, bucket_bytes: int) -> list[list[Span]]:
    """Every rank's step of this number, on the ledger's clock: each begins as its barrier ends."""
    from byhand.figures import Span

    calls, moments = [], []
    for rank, steps in enumerate(run.results):
        begin, _, events = stretches(run, rank)[number + 2]  # after the barrier of the step before
        marks = steps[number + 1]
        moments.append([begin + moment - marks[0] for moment in marks])
        calls.append([event for event in events if event.op == "all_reduce"])
    met = [max(event.start for event in together) for together in zip(*calls, strict=True)]
    alone = [[layer] for layer in range(NUM_LAYERS)]  # how NAIVE sends them, after backward
    sent = alone if bucket_bytes == NAIVE else _buckets(bucket_bytes)
    names = [_name(bucket) for bucket in sent]
    if len(names) != len(met):  # DDP's own buckets
        names = [""] * len(met)
    steps = []
    for (start, *edges, _, waited), mine in zip(moments, calls, strict=True):
        spans = [Span("forward", "", start, edges[0]), *_layers(edges)]
        spans.append(Span("standing still", "", edges[-1], waited))
        free = 0.0  # the link carries one bucket at a time
        for name, event, moment in zip(names, mine, met, strict=True):
            left, free = min(max(moment, free), event.end), event.end
            spans.append(Span(WAITING, "", event.start, left))
            spans.append(Span("message in flight", name, left, event.end))
        steps.append(spans)
    return steps


def code_of(function: Callable) -> str:
    """A function's lines, without its docstring."""
    source = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n *""".*?"""', "", source, count=1, flags=re.DOTALL).rstrip()


# Training with a mistake in it


def sentences(step: int, world_size: int, num_digits: int) -> tuple[Tensor, ...]:
    """Which digits, its tokens, each rank's sentence holds in this step: between 1 and 64."""
    generator = torch.Generator().manual_seed(step)
    lengths = 16 * torch.exp(1.2 * torch.randn(world_size, generator=generator))
    lengths = lengths.clamp(1, 64).long()
    every = torch.randint(num_digits, (int(lengths.sum()),), generator=generator)
    return every.split(lengths.tolist())


def train_on_sentences(rank: int, world_size: int, digits: Digits, mistake: str) -> list[float]:
    """The loss on all digits after every eighth of 80 steps, with this mistake or none."""
    start = rank if mistake == "no broadcast" else 0
    model = MLP.from_weights(random_weights([64, 128, 10], start, torch.float64))
    optimizer, losses = AdamW(model.parameters(), 3e-3), []
    for number in range(80):
        every = sentences(number, world_size, len(digits.train_x))
        model.zero_gradients()
        logits, saved = model.forward(digits.train_x[every[rank]])
        tokens = sum(map(len, every))
        if mistake == "mean of means":
            tokens = world_size * len(every[rank])
        labels = digits.train_labels[every[rank]]
        _, grad_logits = softmax_cross_entropy(logits, labels, tokens)
        model.backward_first(grad_logits, saved)
        all_reduce_gradients_flat(model.gradients())
        optimizer.step(model.gradients())
        if number % 8 == 7:
            logits, _ = model.forward(digits.train_x)
            losses.append(softmax_cross_entropy(logits, digits.train_labels)[0].item())
    return losses
