"""What lecture 15 runs: one step of a GPT, watched while it holds memory; the same step on ranks in
every way that saves some; fp16 at every scale; layers that sleep, and their files.

pictures    what it draws of these
"""

from __future__ import annotations

import inspect
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from byhand.costs import Layout, counting, held
from byhand.hybrid_parallel.step import GROUPS, HybridParallel, chunks_of
from byhand.memory.offload import Offloaded
from byhand.memory.precision import MasterWeights
from byhand.memory.prefetch import OffloadedAdamW, OffloadedLayers, Tier
from byhand.memory.recompute import Recomputed
from byhand.model.attention import Heads
from byhand.model.gpt import GPT, Parts, costs_of, gpt_layers, next_token_loss, random_gpt
from byhand.model.layer import Layer
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.shards import shard
from byhand.model.text import text_batches
from byhand.model.transformer import Residual
from byhand.pipeline_schedules import one_forward_one_backward
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import held_bytes, launch
from byhand.sequence_parallel.gpt import next_token_loss as split_loss
from byhand.sequence_parallel.gpt import sequence_parallel_gpt
from byhand.sequence_parallel.layers import sum_partial_gradients
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import stretches
from byhand.zero import ShardedGradients, ShardedOptimizer, ShardedParameters

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from byhand.figures import Span

Batch = tuple[Tensor, Tensor]  # tokens [B, S], and those that follow
FLOAT32 = {"weights": 4, "gradients": 4, "optimizer": 8}  # bytes a parameter, with AdamW


def model_of(dtype: torch.dtype = torch.float32, num_blocks: int = 8) -> GPT:
    """The page's GPT: 128 tokens, 64 positions, 64 features, 4 heads."""
    return random_gpt(128, 64, 64, 4, num_blocks, dtype=dtype)


def batch_of(num_sequences: int) -> Batch:
    """So many sequences of real text."""
    return text_batches(1, num_sequences, 64)[0]


WAYS = {  # of a model's blocks, by how much of them is computed again
    "none": Parts(),
    "selective": Parts(heads=lambda num_heads, causal: Recomputed(Heads(num_heads, causal))),
    "full": Parts(residual=lambda layers: Recomputed(Residual(layers))),
}


class Sampled(TorchDispatchMode):
    """Notes after each operation what this rank holds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it loads torch's compiler, else

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.samples.append(held_bytes())
        return out


PRODUCTS = {  # of matrices, and which argument is the left one
    "mm": 0,
    "bmm": 0,
    "addmm": 1,
    "addmm_": 1,
    "baddbmm": 1,
}


class Watched(Sampled):
    """Counts the operations of products, too."""

    operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            self.operations += 2 * out.numel() * args[PRODUCTS[name]].shape[-1]
        return out


@dataclass(repr=False)
class Profile:
    """What a rank held after each operation of a step, in bytes.

    state: of weights, gradients and optimizer; phases: the number of the last operation of each;
    top: held between forward and backward, but for the loss's gradient; operations: of products.
    """

    samples: list[int]
    state: dict[str, int]
    phases: dict[str, int]
    top: int
    operations: int

    @property
    def peak(self) -> int:
        """The most at once."""
        return max(self.samples)

    @property
    def kinds(self) -> dict[str, int]:
        """The peak by kind. "for a moment": what an operation makes, and nobody keeps."""
        saved = self.top - sum(self.state.values())
        return self.state | {"activations": saved, "for a moment": self.peak - self.top}

    def __repr__(self) -> str:
        return f"a step that held {self.peak / 1e6:.1f} MB at its peak"


def code_of(function: Any) -> str:
    """A function's lines, without its docstring and what it stands in."""
    source = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n *""".*?"""', "", source, count=1, flags=re.DOTALL).rstrip()


def nbytes(tensors: Sequence[Tensor]) -> int:
    """Of all of them."""
    return sum(tensor.nbytes for tensor in tensors)


def step(model: MLP, optimizer: AdamW, x: Tensor, targets: Tensor) -> Iterator[str]:
    """A training step on one device; yields the name of each phase as it ends."""
    logits, saved = model.forward(x)  # saved: a list, one item a layer
    _, grad = next_token_loss(logits, targets)
    del logits
    yield "forward"
    for layer in reversed(model.layers):
        grad = layer.backward(grad, saved.pop())  # pop: what was used may go
    yield "backward"
    optimizer.step(model.gradients())
    yield "optimizer"


def profile(num_sequences: int = 4, recompute: str = "none", num_blocks: int = 8) -> Profile:
    """One training step on one rank, watched. recompute: one of WAYS."""

    def on_rank(rank: int, world_size: int, weights: GPT, batch: Batch) -> Profile:
        """The step: forward, backward layer by layer, AdamW."""
        model = MLP(gpt_layers(weights, parts=WAYS[recompute]))
        optimizer = AdamW(model.parameters())
        state = {
            "weights": nbytes(model.parameters()),
            "gradients": nbytes(model.gradients()),
            "optimizer": nbytes(optimizer.mean) + nbytes(optimizer.square),
        }
        phases, tops = {}, {}
        with Watched() as sampled:
            for phase in step(model, optimizer, *batch):
                phases[phase], tops[phase] = len(sampled.samples), held_bytes()
        logits = batch[0].numel() * len(weights.table) * weights.table.element_size()
        return Profile(sampled.samples, state, phases, tops["forward"] - logits, sampled.operations)

    arguments = (model_of(num_blocks=num_blocks), batch_of(num_sequences))
    return launch(on_rank, 1, arguments, memory=True).results[0]


def predicted(num_sequences: int = 4, recompute: str = "none", num_blocks: int = 8) -> dict:
    """The same by byhand.costs.held."""
    layout = Layout(rows=num_sequences, recompute=recompute)
    model = costs_of(model_of(num_blocks=num_blocks))
    return held(model, layout, num_sequences, state=FLOAT32)


# The same step on n ranks, in every way that saves memory


@dataclass(frozen=True)
class Technique:
    """A step of all ranks on one global batch, by a technique: the fullest and busiest rank's.

    between: bytes held between steps; peak: at most. sent: to ranks; moved: to files and back.
    operations: of products. idle: the share of a pipeline's bubble.
    """

    between: int
    peak: int
    sent: float
    moved: int
    operations: int
    idle: float = 0.0

    @property
    def work(self) -> float:
        """Operations, and those that it could have done while it idled."""
        return self.operations / (1 - self.idle)


def in_layout(
    layout: Layout, weights: GPT, batch: Batch, residual: Any = Residual, optimizer: Any = AdamW
) -> Callable[[], Any]:
    """The step of byhand.hybrid_parallel under that layout. residual: what builds half a block."""
    groups = groups_for_this_rank(layout.groups, GROUPS)
    costs = [0.0, *[1.0] * (2 * len(weights.blocks)), 0.0, 0.0]
    parts = replace(tensor_parallel_parts(groups["tp"]), residual=residual)
    here = chunks_of(weights, groups, costs=costs, parts=parts)
    schedule = one_forward_one_backward(layout.pp, layout.num_micro_batches(len(batch[0])))
    shape = weights.positions.shape
    return partial(HybridParallel(here, groups, schedule, shape, optimizer).step, *batch)


def sharded(
    stage: Any, weights: GPT, batch: Batch, rows: int | None = None, parts: Parts = WAYS["none"]
) -> Callable[[], Any]:
    """The step of one of ZeRO's stages, in micro-batches of that many rows; None: of all."""
    model = stage(gpt_layers(weights, parts=parts), AdamW)

    def step() -> None:
        """On this rank's sequences."""
        mine = [shard(tensor) for tensor in batch]
        for x, targets in zip(*(t.split(rows or len(t)) for t in mine), strict=True):
            logits, saved = model.forward(x)
            grad = next_token_loss(logits, targets, len(batch[0]))[1]
            del logits
            model.backward(grad, saved)
            del saved, grad
        model.step()

    return step


def by_token(weights: GPT, batch: Batch) -> Callable[[], Any]:
    """The step of tensor parallelism that shares out tokens between the split layers."""
    model = sequence_parallel_gpt(weights)
    optimizer = AdamW(model.parameters())

    def step() -> None:
        """On all sequences."""
        logits, saved = model.forward(batch[0])
        grad = split_loss(logits, batch[1], vocabulary=len(weights.table))[1]
        del logits
        model.backward_first(grad, saved)
        del saved
        sum_partial_gradients(model)
        optimizer.step(model.gradients())

    return step


class Counted(Offloaded):
    """Counts what it writes, and will read."""

    moved = 0

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        """As Offloaded's."""
        y, stored = super().forward(x)
        Counted.moved += 2 * stored.num_bytes
        return y, stored


class CountedTier(Tier):
    """Counts what is written there, and will be read."""

    def write(self, saved: Any, device: torch.device) -> Any:
        """As Tier's."""
        stored = super().write(saved, device)
        Counted.moved += 2 * stored.num_bytes
        return stored


def programs(n: int, num_sequences: int, folder: str) -> dict[str, tuple[Any, float]]:
    """By technique: what makes its step of weights and a batch, and its bubble."""
    dp = partial(in_layout, Layout(dp=n, rows=num_sequences // n))
    m = num_sequences if n > 2 else num_sequences // 2
    pipeline = Layout(pp=n, rows=num_sequences // m)
    blocks, masters = WAYS["full"], partial(MasterWeights, AdamW)
    means_in_files = partial(OffloadedAdamW, tier=CountedTier(folder))
    found = {
        "dp": dp,
        "dp, bf16": partial(dp, optimizer=masters),
        "dp, accumulated": partial(in_layout, Layout(dp=n, rows=1)),
        "dp, recomputed": partial(dp, residual=blocks.residual),
        "dp, offloaded": partial(dp, residual=lambda some: Counted(Residual(some), folder)),
        "dp, averages offloaded": partial(dp, optimizer=means_in_files),
        "ZeRO-1": partial(sharded, ShardedOptimizer),
        "ZeRO-2": partial(sharded, ShardedGradients),
        "ZeRO-3": partial(sharded, ShardedParameters),
        "ZeRO-3, recomputed": partial(sharded, ShardedParameters, parts=blocks),
        "tp": partial(in_layout, Layout(tp=n, rows=num_sequences)),
        "tp and sp": by_token,
        "pp": partial(in_layout, pipeline),
    }
    return {name: (make, (n - 1) / (m + n - 1) * (name == "pp")) for name, make in found.items()}


def techniques(n: int, num_sequences: int = 8) -> dict[str, Technique]:
    """Every one of `programs` on n ranks, one after the other in one launch."""
    weights = {dtype: model_of(dtype) for dtype in (torch.float32, torch.bfloat16)}
    run = launch(_every_technique, n, (weights, batch_of(num_sequences)), memory=True, deadline=300)
    sent = [[part.sent_bytes() for part in stretches(run, rank)[1::2]] for rank in range(n)]
    found = {}
    for number, (name, (*_, idle)) in enumerate(programs(n, num_sequences, "").items()):
        rows = zip(*(result[number] for result in run.results), strict=True)
        between, peak, moved, operations = map(max, rows)
        most = max(sum(of_rank[number].values()) for of_rank in sent)
        found[name] = Technique(between, peak, most, moved, operations, idle)
    return found


def on_paper(n: int, num_sequences: int = 8) -> dict[str, float]:
    """Of each of `programs` the bytes that the fullest rank holds, but for a moment."""
    dp, m = Layout(dp=n, rows=num_sequences // n), num_sequences if n > 2 else num_sequences // 2
    asked: dict[str, Layout] = {
        "dp": dp,
        "dp, accumulated": replace(dp, rows=1),
        "dp, recomputed": replace(dp, recompute="full"),
        **{f"ZeRO-{stage}": replace(dp, zero=stage) for stage in (1, 2, 3)},
        "ZeRO-3, recomputed": replace(dp, zero=3, recompute="full"),
        "tp": Layout(tp=n, rows=num_sequences),
        "tp and sp": Layout(tp=n, rows=num_sequences, sequence=True),
        "pp": Layout(pp=n, rows=num_sequences // m),
    }
    found = {}
    for name, layout in asked.items():
        model = costs_of(model_of(), vocabulary_parallel=layout.sequence)
        found[name] = max(
            sum(held(model, layout, num_sequences, stage, state=FLOAT32).values())
            for stage in range(layout.pp)
        )
    model, tokens = costs_of(model_of()), dp.rows * 64
    narrow = costs_of(model_of(torch.bfloat16))
    found["dp, bf16"] = sum(held(narrow, dp, num_sequences).values())
    found["dp, averages offloaded"] = found["dp"] - FLOAT32["optimizer"] * model.parameters
    halves = [counting.saved(part, dp) for part in model.parts if part.half]  # files, but one
    found["dp, offloaded"] = found["dp"] - tokens * (sum(halves) - max(halves))
    return found


def _every_technique(rank: int, world_size: int, weights: dict, batch: Batch) -> list[tuple]:
    """Of each: bytes between steps, at most, and moved; operations. Barriers before and after."""
    for each in weights.values():
        gpt_layers(each, parts=tensor_parallel_parts())  # from now on they count as held
    found = []
    with TemporaryDirectory() as folder:
        for name, (make, _) in programs(world_size, len(batch[0]), folder).items():
            before = held_bytes()
            step = make(weights[torch.bfloat16 if "bf16" in name else torch.float32], batch)
            between, Counted.moved = held_bytes(), 0
            dist.barrier()
            with Watched() as watched:
                step()
            dist.barrier()
            most = max(watched.samples) - before
            found.append((between - before, most, Counted.moved, watched.operations))
            del step
    return found


# Numbers of two bytes


GLOBAL_BATCH = 2**16  # sequences: 4 million tokens, of which this rank computes two sequences


def fp16_window(exponents: Sequence[int]) -> dict[str, list[float]]:
    """Percent of a GPT's gradients that fp16 loses, at each loss scale of 2^exponent: those that
    become 0 though float32's are not, and those that are not finite."""
    batch = batch_of(2)
    found: dict[str, list[float]] = {"become 0": [], "overflow": []}
    exact = _gradients(model_of(torch.float32, 2), batch, 1.0)
    weights = model_of(torch.float16, 2)
    for exponent in exponents:
        gradient = _gradients(weights, batch, 2.0**exponent)
        count = int((exact != 0).sum())
        found["become 0"].append(100 * int(((gradient == 0) & (exact != 0)).sum()) / count)
        found["overflow"].append(100 * int((~gradient.isfinite()).sum()) / count)
    return found


def _gradients(weights: GPT, batch: Batch, scale: float) -> Tensor:
    model = MLP(gpt_layers(weights))
    logits, saved = model.forward(batch[0])
    _, grad = next_token_loss(logits.float(), batch[1], GLOBAL_BATCH)
    model.backward_first((grad * scale).to(logits.dtype), saved)
    return torch.cat([gradient.flatten() for gradient in model.gradients()])


def walk(
    dtype: torch.dtype, masters: bool, num_steps: int, lr: float
) -> tuple[list[float], list[float]]:
    """A small GPT learns with AdamW: one of its weights after each step, and the losses."""
    model = MLP(gpt_layers(model_of(dtype, 1)))
    make = partial(AdamW, lr=lr)
    optimizer = MasterWeights(make, model.parameters()) if masters else make(model.parameters())
    weight = max(model.parameters(), key=len)  # of the MLP's first layer
    path, losses = [], []
    for x, targets in text_batches(num_steps, 4, 64):
        model.zero_gradients()
        logits, saved = model.forward(x)
        loss, grad = next_token_loss(logits.float(), targets)
        model.backward_first(grad.to(dtype), saved)
        optimizer.step(model.gradients())
        path.append(float(weight[0, 0]))
        losses.append(float(loss))
    return path, losses


# Layers that sleep, and their files


SLEEPS = 0.06, 0.12  # seconds of a layer, forward and backward
SAVED, NUM_LAYERS = 500_000, 6  # bytes that it saves; how many there are


class Asleep(Layer):
    """A layer that sleeps, saves so many bytes, and tells a diary when it computed."""

    def __init__(self, number: int, diary: list):
        self.number, self.diary = number, diary

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x -> x."""
        noted(self.diary, "forward", self.number, time.sleep, SLEEPS[0])
        return x, torch.zeros(SAVED // 4)

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, None]:
        """grad_y -> grad_y."""
        noted(self.diary, "backward", self.number, time.sleep, SLEEPS[1])
        return grad_y, None


def noted(diary: list, kind: str, number: int, function: Callable[..., Any], *args: Any) -> Any:
    """The function's value; the diary gets when it was called and when it ended."""
    begun = time.monotonic()
    value = function(*args)
    diary.append((kind, number, begun, time.monotonic()))
    return value


class NotedTier(Tier):
    """Tells a diary when it wrote and read; layers are numbered in the order of their coming."""

    diary: list

    def write(self, saved: Any, device: torch.device) -> Any:
        """As Tier's."""
        number = sum(entry[0] == "to the file" for entry in self.diary)
        return noted(self.diary, "to the file", number, super().write, saved, device)

    def read(self, stored: Any) -> Any:
        """As Tier's."""
        number = NUM_LAYERS - 2 - sum(entry[0] == "from the file" for entry in self.diary)
        return noted(self.diary, "from the file", number, super().read, stored)


def offloaded_step(ahead: bool, bytes_per_second: float, repetitions: int = 5) -> list[Span]:
    """The fastest of some steps of the sleeping layers, whose files are that fast; from 0 on.

    A sleep ends late, never early: once a step is within 3 % of paper, no other is tried.
    """
    from byhand.figures import Span

    enough, steps = 1.03 * seconds_on_paper(ahead, bytes_per_second), []
    for _ in range(repetitions):
        diary: list = []
        with TemporaryDirectory() as folder:
            tier = NotedTier(folder, bytes_per_second)
            tier.diary = diary
            layers = [Asleep(number, diary) for number in range(NUM_LAYERS)]
            model, x = OffloadedLayers(layers, tier, ahead), torch.zeros(1)
            zero = time.monotonic()
            model.backward(*model.forward(x))
        steps.append([Span(kind, n, a - zero, b - zero) for kind, n, a, b in diary])
        if seconds_of(steps[-1]) < enough:
            break
    return min(steps, key=seconds_of)


def seconds_of(spans: Sequence[Span]) -> float:
    """Until the last of them ended."""
    return max(span.end for span in spans)


def seconds_on_paper(ahead: bool, bytes_per_second: float) -> float:
    """The same, predicted."""
    forward, backward = SLEEPS
    file = SAVED / bytes_per_second
    if not ahead:
        return NUM_LAYERS * (forward + backward) + 2 * (NUM_LAYERS - 1) * file
    first = forward + (NUM_LAYERS - 1) * max(forward, file)
    return first + (NUM_LAYERS - 1) * max(backward, file) + backward
