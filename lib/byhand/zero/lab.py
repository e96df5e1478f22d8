"""What lecture 06 runs and draws: peaks measured, and a step watched on a slow link.

The watched step's layers sleep, as in lecture 05; their weights and gradients are real, and travel
over a slow link: see byhand.tools.asleep.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.data_parallel import DataParallel
from byhand.model.layer import Layer
from byhand.model.mlp import MLP, Linear
from byhand.model.optimizers import SGD, AdamW
from byhand.runtime import Event, Run, VirtualNetwork, launch
from byhand.tools.asleep import LAYER_BYTES, Sleep, stretches
from byhand.zero.exchange import exchange
from byhand.zero.paper import BACKWARD, FORWARD, NUM_LAYERS, check_variant
from byhand.zero.stages import ShardedGradients, ShardedOptimizer, ShardedParameters

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from byhand.figures import Span
    from byhand.figures.style import CourseFigure

VARIANTS: dict[str, Callable[..., Any]] = {
    "stage 1": ShardedOptimizer,
    "stage 2": ShardedGradients,
    "stage 3": ShardedParameters,
    "stage 3, no prefetch": partial(ShardedParameters, prefetch=False),
    "stage 3, kept": partial(ShardedParameters, reshard=False),
}


def code_of(function: Any) -> str:
    """A function's lines, without its docstring and what it stands in."""
    source = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n *""".*?"""', "", source, count=1, flags=re.DOTALL).rstrip()


def text_of(numbers: Tensor) -> str:
    """As a figure's cell has room for them."""
    return "  ".join(f"{number:g}" for number in numbers.tolist())


def held(model: ShardedOptimizer) -> dict[str, int]:
    """Bytes of weights, gradients and the optimizer's tensors that this rank holds now."""
    optimizer = model.optimizer
    state = [*getattr(optimizer, "mean", []), *getattr(optimizer, "square", [])]
    masters = [flat.shard for flat in model.flats if not _looks_into(flat.shard, flat.whole)]
    return {
        "weights": sum(flat.whole.nbytes for flat in model.flats if flat.whole is not None),
        "gradients": sum(_bytes(flat.grad_whole) + _bytes(flat.grad_shard) for flat in model.flats),
        "optimizer": sum(map(_bytes, [*masters, *state])),
    }


def _looks_into(shard: Tensor, whole: Tensor | None) -> bool:
    """Whether the shard is a view of the whole, and has no bytes of its own."""
    return whole is not None and shard.untyped_storage()._cdata == whole.untyped_storage()._cdata


def _bytes(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.nbytes


MOMENTS = "F0", "F1", "F2", "B2", "B1", "B0", "step"  # forward and backward of three units


def whole_at_moments() -> CourseFigure:
    """Of three units, what is whole on a rank at each moment of a step: stages 1, 2 and 3."""
    from byhand.figures import style
    from byhand.figures.cells import Cell, cells

    backward = {2: 3, 1: 4, 0: 5}  # when backward makes a unit's gradient
    always: list[Iterable[int]] = [range(7)] * 3
    piling_up: list[Iterable[int]] = [range(backward[unit], 7) for unit in range(3)]
    sent_at_once: list[Iterable[int]] = [range(at, at + 2) for at in (5, 4, 3)]
    in_use: list[Iterable[int]] = [(unit, backward[unit]) for unit in range(3)]
    stages = {"Stage 1": (always, piling_up), "Stage 2": (always, sent_at_once)}
    stages["Stage 3"] = (in_use, sent_at_once)
    kinds = [f"{kind} {unit}" for kind in ("weights", "gradient") for unit in range(3)]
    colours = [style.STATE_COLOURS[kind] for kind in ("weights", "gradients") for _ in range(3)]
    title = "Stage by stage, less is whole on a rank, and for a shorter time"
    with style.plot(2.3, title, 1, 3) as (figure, panels):
        for axes, (stage, (weights, gradients)) in zip(panels, stages.items(), strict=True):
            rows = [*weights, *gradients]
            filled = [Cell(r, c, [colours[r]]) for r, row in enumerate(rows) for c in row]
            names = kinds if stage == "Stage 1" else [""] * len(kinds)
            cells(axes, names, len(MOMENTS), filled, stage)
            look = {"fontsize": style.SMALL_POINTS}
            axes.set_xticks([c + 0.5 for c in range(len(MOMENTS))], MOMENTS, **look)
    return figure


def peaks(variant: str, world_size: int, width: int = 128, depth: int = 12) -> float:
    """The most that a rank holds in two steps of AdamW, over all its layers' weights, measured.

    variant: one of VARIANTS, or "no stage": plain data parallelism. Float32; the layers are made
    one by one, and eight rows of activations hardly count.
    """

    def two_steps(rank: int, world_size: int) -> None:
        """What is measured."""
        pairs = ((torch.zeros(width, width), torch.zeros(width)) for _ in range(depth))
        layers = (Linear(*pair) for pair in pairs)
        model = _replica(layers) if variant == "no stage" else VARIANTS[variant](layers, AdamW)
        for _ in range(2):
            y, saved = model.forward(torch.ones(8, width))
            model.backward(y, saved)
            model.step()

    run = launch(two_steps, world_size, memory=True)
    return least_peak(run) / (4 * depth * width * (width + 1))


def least_peak(run: Run) -> int:
    """Bytes at the peak of ranks that all hold as much: a loaded machine can only add to it.

    gloo's own thread may let go of what it sent a moment after the rank has, never before.
    """
    return min(run.peak_bytes or ())


def _replica(layers: Iterable[Layer], optimizer_of: Any = AdamW, bucket: int = 4 << 20) -> Any:
    """Plain data parallelism, with an optimizer that a `step` asks, and no flat parameters."""
    model = DataParallel(MLP(list(layers)), bucket_bytes=bucket)
    optimizer = optimizer_of(model.parameters())

    def step() -> None:
        optimizer.step(model.gradients())
        model.zero_gradients()

    calls = {"forward": model.forward, "backward": model.backward, "step": step}
    return SimpleNamespace(flats=[], **calls)


def last_step(run: Run, rank: int | None = None) -> list[Event]:
    """The calls of all ranks, or of one, each rank's after its last barrier."""
    ranks = range(run.world_size) if rank is None else [rank]
    return [call for one in ranks for call in stretches(run, one)[-1].calls]


class WatchedLayer(Sleep):
    """A sleeping layer that tells a diary when it computed, and what of the model was whole."""

    def __init__(self, number: int, diary: list, model: list[ShardedOptimizer]):
        super().__init__(FORWARD, BACKWARD, num_bytes=LAYER_BYTES)
        self.number, self.diary, self.model = number, diary, model

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """x -> x."""
        return self._noted("forward", super().forward, x)

    def backward_input(self, grad_y: Tensor, saved: None) -> tuple[Tensor, None]:
        """grad_y -> grad_y."""
        return self._noted("backward", super().backward_input, grad_y, saved)

    def _noted(self, kind: str, compute: Any, *args: Any) -> Any:
        start, flats = time.monotonic(), self.model[0].flats
        whole = sum(_bytes(flat.whole) + _bytes(flat.grad_whole) for flat in flats)
        out = compute(*args)
        self.diary.append((kind, self.number, start, time.monotonic(), whole))
        return out


@dataclass(repr=False)
class WatchedStep:
    """One step on real ranks: what rank 0 computed and when, what travelled, what it held whole.

    spans: as `byhand.figures.lanes` draws them. held: bytes, at each of the computing spans.
    """

    variant: str
    spans: list[Span]
    held: list[int]
    run: Run

    @property
    def seconds(self) -> float:
        """From the first thing that rank 0 did to the last."""
        return max(span.end for span in self.spans)

    @property
    def exposed(self) -> float:
        """Seconds in which rank 0 did not compute: exposed communication."""
        computing = [span for span in self.spans if span.kind in ("forward", "backward")]
        return self.seconds - sum(span.end - span.start for span in computing)

    def __repr__(self) -> str:
        exposed = f"{self.exposed / self.seconds:.0%} of it exposed"
        return f"{self.variant}: {1e3 * self.seconds:.0f} ms, {exposed} communication"


def watch(
    variant: str,
    world_size: int = 2,
    network: VirtualNetwork | None = None,
    num_steps: int = 3,
    num_runs: int = 1,
) -> WatchedStep:
    """The fastest step of these runs, of `num_steps` each, under one of VARIANTS: six layers sleep.

    variant: or "data parallel", with a bucket for each layer. A reduce-scatter is an exchange: it
    sends half of what an all-reduce does, and gloo's own as much.
    The step of the optimizer is left out of stage 3, for it sends nothing; stages 1 and 2 end
    with it.

    Raises:
        ValueError: there is no such variant.
    """
    check_variant(variant)

    def on_rank(rank: int, world_size: int) -> list[list[tuple]]:
        """The diary of each step, whose moments count from the barrier at its start."""
        diary, model, diaries = [], [], []
        layers = [WatchedLayer(number, diary, model) for number in range(NUM_LAYERS)]
        make: Any = VARIANTS.get(variant)
        options = {"reduce_scatter": exchange} if make else {"bucket": LAYER_BYTES}
        model.append((make or _replica)(layers, partial(SGD, lr=0.1), **options))
        for _ in range(num_steps + 1):
            diary.clear()
            dist.barrier()
            zero = time.monotonic()
            y, saved = model[0].forward(torch.zeros(1))
            model[0].backward(y, saved)
            if not variant.startswith("stage 3"):
                model[0].step()
            diaries.append([(kind, n, a - zero, b - zero, held) for kind, n, a, b, held in diary])
            for flat in model[0].flats:
                flat.grad_shard = None
        return diaries

    runs = [launch(on_rank, world_size, network=network) for _ in range(num_runs)]
    numbers = range(1, num_steps + 1)  # 0: ranks connect
    steps = [_step(run, variant, number) for run in runs for number in numbers]
    return min(steps, key=lambda step: step.seconds)


def _step(run: Run, variant: str, number: int) -> WatchedStep:
    """Rank 0's step of this number: its diary, and the ledger's calls since the step's barrier."""
    from byhand.figures import Span

    diary, (zero, _, calls) = run.results[0][number], stretches(run)[number + 1]
    spans = [Span(*entry[:4]) for entry in diary]
    for op in ("all_gather", "reduce_scatter", "all_reduce"):
        called = "recv" if op == "reduce_scatter" else op  # of `exchange`: a layer is one block
        own = [call for call in calls if call.op == called]
        for unit, call in zip(_order(op, len(own), variant), own, strict=True):
            spans.append(Span(op, unit, call.start - zero, call.end - zero))
    return WatchedStep(variant, spans, [entry[4] for entry in diary], run)


def _order(op: str, count: int, variant: str) -> list[int]:
    """Which unit each of a step's calls is for: forward, then backward."""
    down, up = list(range(NUM_LAYERS)), list(reversed(range(NUM_LAYERS)))
    return (down + up if op == "all_gather" or variant == "stage 1" else up)[:count]
