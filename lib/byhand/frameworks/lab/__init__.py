"""What lecture 18 runs and draws: every way in one launch, measured; what each refuses; the table.

All ways take the same steps from the same weights. A way is the name of a generator, as by_torch,
by_others and by_hand have them, so that it can be sent to ranks and shown on the page.
"""

from __future__ import annotations

import difflib
import inspect
import re
import statistics
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from byhand.costs.layout import Layout
from byhand.frameworks import by_hand, by_others, by_torch
from byhand.frameworks.by_torch import Batches
from byhand.frameworks.configurations import BERT_LARGE, CONFIGURATIONS
from byhand.frameworks.lab.marks import mark
from byhand.frameworks.refusals import REFUSALS, one_row_less, sentence_of, silences
from byhand.frameworks.transformer import transformer
from byhand.model.gpt import GPT
from byhand.planner.step import Step, step
from byhand.runtime import Event, Run, launch
from byhand.tools.peaks import peaks_of
from byhand.words import num_bytes_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TORCH = {
    "DDP": by_torch.ddp,
    "ZeroRedundancyOptimizer": by_torch.zero_redundancy,
    "FSDP2": by_torch.fsdp2,
    "DTensor": by_torch.tensor_parallel,
    "pipelining": by_torch.pipelined,
}
OURS = {
    "ours, data parallel": by_hand.data_parallel,
    "ours, ZeRO-1": by_hand.zero_1,
    "ours, ZeRO-3": by_hand.zero_3,
    "ours, tensor parallel": by_hand.tensor_parallel,
    "ours, pipeline": by_hand.pipelined,
}
BY_LAYERS = {
    "torch, naive": by_torch.naive,
    "torch, GPipe": by_torch.as_gpipe,
    "torch, 1F1B": by_torch.pipelined,
    "ours, naive": by_hand.naive,
    "ours, GPipe": by_hand.as_gpipe,
    "ours, 1F1B": by_hand.pipelined,
}
OTHERS = {
    "Accelerate": ("accelerate", by_others.accelerate),
    "DeepSpeed": ("deepspeed", by_others.deepspeed),
    "Megatron-core": ("megatron", by_others.megatron),
}


def others() -> dict[str, Callable]:
    """Those of the other frameworks that are installed."""
    return {name: way for name, (package, way) in OTHERS.items() if not by_others.missing(package)}


def absent() -> dict[str, str]:
    """Those that are not, and why each is left out."""
    told = {name: by_others.missing(package) for name, (package, _) in OTHERS.items()}
    return {name: why for name, why in told.items() if why}


@dataclass(frozen=True)
class Trained:
    """One way's steps: losses of the global batch; a late step's calls and bytes of rank 0; the
    most bytes that the fullest rank held in a step.
    """

    losses: list[float]
    calls: Mapping[str, int]
    sent_bytes: float
    peak_bytes: int

    def __repr__(self) -> str:
        calls = ", ".join(f"{count} {op}" for op, count in self.calls.items())
        return f"{calls}; {self.sent_bytes / 1e3:,.0f} KB"


def losses_alone(weights: GPT, batches: Batches) -> list[float]:
    """One device's."""
    return _means([[_number(loss) for loss in by_torch.alone(weights, batches)]])


def losses_of(
    ways: Mapping[str, Callable], weights: GPT, batches: Batches, world_size: int = 2
) -> dict[str, list[float]]:
    """The losses alone, of all ways in one launch."""
    run = launch(_losses, world_size, (list(ways.values()), weights, batches), deadline=300)
    return dict(zip(ways, map(_means, zip(*run.results, strict=True)), strict=True))


def train_all(
    ways: Mapping[str, Callable], weights: GPT, batches: Batches, world_size: int = 2
) -> dict[str, Trained]:
    """All of these ways, one after the other, in one launch."""
    run = launch(_measured, world_size, (list(ways.values()), weights, batches), deadline=300)
    by_way = zip(_last_steps(run, len(batches)), zip(*run.results, strict=True), strict=True)
    return {name: _trained(*found) for name, found in zip(ways, by_way, strict=True)}


def step_seconds(
    ways: Mapping[str, Callable], weights: GPT, batches: Batches, world_size: int = 2
) -> dict[str, float]:
    """A step's median seconds by way, on the rank that takes longest. After each step it is the
    next way's turn, so that a machine busy with something else slows all of them.
    """
    run = launch(_timed, world_size, (list(ways.values()), weights, batches), deadline=300)
    by_way = zip(*run.results, strict=True)
    return {
        name: statistics.median(map(max, zip(*ranks, strict=True)))
        for name, ranks in zip(ways, by_way, strict=True)
    }


def _timed(
    rank: int, world_size: int, ways: Sequence[Callable], weights: GPT, batches: Batches
) -> list[list[float]]:
    running: list[tuple[by_torch.Losses, list[float]]] = [
        (way(weights, batches), []) for way in ways
    ]
    for _ in batches:
        for steps, seconds in running:
            dist.barrier()
            start = time.perf_counter()
            next(steps)
            seconds.append(time.perf_counter() - start)
    return [seconds for _, seconds in running]


def _losses(
    rank: int, world_size: int, ways: Sequence[Callable], weights: GPT, batches: Batches
) -> list[list[float | None]]:
    return [[_number(loss) for loss in way(weights, batches)] for way in ways]


def _measured(
    rank: int, world_size: int, ways: Sequence[Callable], weights: GPT, batches: Batches
) -> list[tuple]:
    """Of each way: the losses, and the second step's peak."""
    found = []
    for way in ways:
        losses, steps = [], way(weights, batches)
        for _ in batches:
            mark()
            losses.append(_number(next(steps)))
        mark()
        list(steps)  # what stands behind its last yield
        found.append((losses, list(peaks_of(way(weights, batches[:2])))[-1]))
    return found


def _number(loss: Any) -> float | None:
    return None if loss is None else float(loss)


def _means(ranks: Iterable[Sequence[float | None]]) -> list[float]:
    """Of the ranks that told a loss, step by step."""
    steps = ([loss for loss in step if loss is not None] for step in zip(*ranks, strict=True))
    return [statistics.fmean(told) for told in steps]


def _last_steps(run: Run, num_steps: int) -> list[list[Event]]:
    """What rank 0 called in the last step of each way: between the last two of its marks."""
    steps: list[list[Event]] = []
    for event in run.ledger.select(rank=0):
        if event.op == "barrier" and event.source.startswith("marks.py:"):
            steps.append([])
        elif steps:
            steps[-1].append(event)
    return steps[num_steps - 1 :: num_steps + 1]


def _trained(calls: Sequence[Event], found: Sequence[tuple]) -> Trained:
    losses, peaks = zip(*found, strict=True)
    counts = Counter(event.op for event in calls if event.sent_bytes)
    sent = sum(event.sent_bytes for event in calls)
    return Trained(_means(losses), dict(counts), sent, max(peaks))


# What they do not do


def refused(
    weights: GPT, batches: Batches, world_size: int = 2, names: Sequence[str] = tuple(REFUSALS)
) -> dict[str, str]:
    """By framework that is installed: how it refuses what refusals.py asks of it, on rank 0."""
    gone = absent()
    asked = {name: REFUSALS[name] for name in names if name not in gone}

    def ask(rank: int, world_size: int) -> list[str]:
        return [sentence_of(refuse, weights, batches) for refuse in asked.values()]

    return dict(zip(asked, launch(ask, world_size, deadline=300).results[0], strict=True))


def silent(
    weights: GPT, batches: Batches, world_size: int = 2
) -> dict[str, tuple[list[float], list[float]]]:
    """By silence: each step's loss, and one device's on the same rows."""
    alone = {uneven: losses_alone(weights, given) for uneven, given in _both(batches).items()}
    found = losses_of(silences(), weights, batches, world_size)
    return {name: (losses, alone["unequal rows" in name]) for name, losses in found.items()}


def _both(batches: Batches) -> dict[bool, Batches]:
    return {False: batches, True: one_row_less(batches)}


def away(alone: Sequence[float], losses: Sequence[float]) -> list[float]:
    """By step, the distance of two curves of losses."""
    return [abs(a - b) for a, b in zip(alone, losses, strict=True)]


def apart(copies: Tensor, group: dist.ProcessGroup | None = None) -> float:
    """How far apart the copies are that a group's ranks hold of one parameter: 0 is right."""
    most, least = copies.detach().clone(), copies.detach().clone()
    dist.all_reduce(most, dist.ReduceOp.MAX, group)
    dist.all_reduce(least, dist.ReduceOp.MIN, group)
    return float((most - least).max())


def copies_apart(
    weights: GPT, batches: Batches, right: bool, world_size: int = 2
) -> dict[str, float]:
    """By silence, or by what is right in its place: `apart` of a parameter that ranks share, after
    the last step.
    """
    return launch(_apart, world_size, (weights, batches, right), deadline=300).results[0]


def _apart(
    rank: int, world_size: int, weights: GPT, batches: Batches, right: bool
) -> dict[str, float]:
    split = _finished(by_torch.tensor_parallel(weights, batches, sum_gains=right))
    found = {"DTensor: gains": apart(split[1].attention.q_norm.weight)}
    stage = _finished(by_torch.pipelined(weights, batches, tie=right))
    ends = dist.new_group([0, world_size - 1])
    if rank in (0, world_size - 1):
        found["pipelining: table"] = apart(stage[-1 if rank else 0].table, ends)
    replica = _finished(by_torch.ddp(weights, _both(batches)[not right]))
    return found | {"DDP: unequal rows": apart(replica.module[0].table)}


def saved(
    weights: GPT, batches: Batches, later: Batches, tie: bool, world_size: int = 2
) -> tuple[float, float]:
    """The mean loss of `later` after a pipeline has trained: with the two tables that its ends
    have, and with the one that a checkpoint keeps of a model whose head shares the embedding's.
    """
    stages = launch(_stage, world_size, (weights, batches, tie), deadline=300).results
    model = transformer(weights)
    table, head = model[0].table, model[-1]
    head.table = nn.Parameter(table.detach().clone())  # two, as the stages have
    for rank, trained in enumerate(stages):
        first, end = (each * len(model) // world_size for each in (rank, rank + 1))
        model[first:end].load_state_dict(trained)
    as_trained = _mean_loss(model, later)
    head.table = table
    return as_trained, _mean_loss(model, later)


def _stage(rank: int, world_size: int, weights: GPT, batches: Batches, tie: bool) -> Any:
    return _finished(by_torch.pipelined(weights, batches, tie=tie)).state_dict()


@torch.no_grad()
def _mean_loss(model: nn.Module, batches: Batches) -> float:
    losses = [by_torch.next_token_loss(model(tokens), after) for tokens, after in batches]
    return float(torch.stack(losses).mean())


def _finished(steps: by_torch.Losses) -> Any:
    """What a way returns after its last step: its model."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


# What one changes


def lines_changed(way: Callable) -> list[str]:
    """The lines of a way that `alone` has not, its docstring left out; Megatron's with helpers."""
    changed = _added(_code(by_torch.alone), _code(way))
    if way is by_torch.tensor_parallel:
        changed += [f"{name!r}: ..." for name in by_torch.PLAN]
    if way is by_others.megatron:
        for helper in (by_others.Split, by_others._split_by_megatron, by_others._config):
            changed += _code(helper)
    return changed


def _code(way: Callable) -> list[str]:
    """Source lines below the signature, without docstrings, comments and what is empty."""
    import ast

    tree = ast.parse(textwrap.dedent(inspect.getsource(way)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.unparse(tree).splitlines()[1:]


def _added(before: list[str], after: list[str]) -> list[str]:
    return [
        line[2:].removeprefix(4 * " ")
        for line in difflib.ndiff(before, after)
        if line.startswith("+ ")
    ]


# A BERT by its layers


def bert(num_devices: int, num_micro_batches: int, num_sequences: int = 64) -> Step:
    """A step of BERT-large on paper, its blocks shared out over A100s, by 1F1B."""
    layout = Layout(pp=num_devices, rows=num_sequences // num_micro_batches)
    return step(BERT_LARGE, layout, "a100-80gb", num_sequences, software="megatron-2022")


# Real configurations


def seconds_of(name: str, chunks: int = 1) -> str:
    """A configuration's step on paper, as its source has it, and how much longer it ran, in a line.

    A published MFU is made seconds. Why not, where the planner cannot judge.
    """
    ran, on_paper = CONFIGURATIONS[name].ran, CONFIGURATIONS[name].step(chunks)
    if on_paper is None:
        return f"not judged: {ran.unjudged}"
    if ran.floor:
        return f"{on_paper.seconds:.1f} s at least: {ran.floor}"
    published = on_paper.seconds * on_paper.mfu / ran.mfu if ran.mfu else ran.seconds
    if published is None:
        return f"{on_paper.seconds:8.1f} s"
    off = published / on_paper.seconds - 1
    return f"{on_paper.seconds:8.1f} s{published:10.1f} s{off:+10.0%}"


# Pictures


def code_of(function: Any) -> str:
    """A function's lines, without its docstring and the imports that it begins with."""
    source = textwrap.dedent(inspect.getsource(function))
    source = re.sub(r'\n *""".*?"""', "", source, count=1, flags=re.DOTALL)
    source = re.sub(r"(?:\n +(?:import|from) .*)+\n", "", source)
    return re.sub(r" *# type: ignore.*", "", source).rstrip()


def whole_table(found: Mapping[str, Trained], seconds: Mapping[str, float]) -> str:
    """Of each way: lines to change, calls of a step, bytes sent, the most held, and seconds."""
    head = f"{'':24}lines{'calls':>7}{'sent':>9}{'held':>10}{'a step':>9}"
    rows = [
        f"{name:24}{lines:>5}{sum(one.calls.values()):7}{one.sent_bytes / 1e3:6.0f} KB"
        f"{one.peak_bytes / 1e6:7.2f} MB{1e3 * seconds[name]:6.0f} ms"
        for name, one in found.items()
        for lines in [len(lines_changed(TORCH[name])) if name in TORCH else ""]
    ]
    return "\n".join([head, *rows])


def held_bars(title: str, names: Iterable[str], memory: float = 80e9) -> Figure:
    """What a rank of these real configurations holds, by kind; their GPUs have that memory."""
    from byhand.figures.bars import Line, stacked
    from byhand.figures.style import STATE_COLOURS

    rows, hues = {}, STATE_COLOURS
    for name in names:
        held = CONFIGURATIONS[name].held()
        bars = [(kind, held.get(kind, 0.0), hue) for kind, hue in hues.items()]
        rows[name] = [Line(bars, num_bytes_text(sum(held.values())))]
    told = f"held by a rank of the first stage (the axis ends at a GPU's {num_bytes_text(memory)})"
    figure = stacked({"": rows}, title, told, hues, memory)
    figure.axes[0].xaxis.set_major_formatter(lambda value, _: num_bytes_text(value))
    return figure
