"""One transformer layer split in each way, run, weighed and counted; a gather timed and drawn.

The layer is Korthikanti's: norm, attention, dropout and norm, MLP, dropout, with numbers of two
bytes (bfloat16), so that what it saves can be held against the paper's table. Its attention drops
nothing, so its scores cost 2 bytes and not the paper's 5.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.gpt import Block, Parts, random_gpt
from byhand.model.layer import PARTIAL, Layer
from byhand.model.mlp import GELU, MLP
from byhand.model.shards import shard
from byhand.model.transformer import Residual
from byhand.runtime import Run, VirtualNetwork, launch
from byhand.sequence_parallel.formulas import activation_bytes, sent_bytes
from byhand.sequence_parallel.gpt import next_token_loss, sequence_parallel_parts
from byhand.sequence_parallel.layers import Dropout, SequenceColumnLinear, generators
from byhand.sequence_parallel.overlap import gather_while
from byhand.sequence_parallel.tokens import gather
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import LINK as LINK
from byhand.tools.asleep import from_zero, sent_each_way, stretches
from byhand.tools.asleep import slow_link as slow_link

if TYPE_CHECKING:  # ranks import this module
    from byhand.figures.style import CourseFigure

PARTS = {"alone": Parts(), "tensor": tensor_parallel_parts(), "sequence": sequence_parallel_parts()}
SHARD_BYTES, PRODUCT = 500_000, 0.02  # of a message; seconds of a product


def transformer_layer(weights: Block, num_heads: int, way: str) -> MLP:
    """Two residuals, each a norm, a split half and a dropout; `way` is one of formulas.WAYS."""
    parts = PARTS[way.partition(",")[0]]
    common, own = generators(0)
    drop = Dropout(0.1, own if way.startswith("sequence") else common)
    heads = parts.attention(weights.qkv, weights.out, num_heads, causal=True)
    hidden = parts.mlp([weights.up, weights.down], GELU)
    for layer in (*heads.layers, *hidden.layers):
        if isinstance(layer, SequenceColumnLinear):
            layer.gather_again = way == "sequence, gathered twice"
    halves = (weights.attention_norm, heads), (weights.mlp_norm, hidden)
    return MLP([Residual([parts.norm(*norm), half, drop]) for norm, half in halves])


def run_layer(
    way: str,
    world_size: int,
    positions: int = 24,
    features: int = 48,
    num_heads: int = 24,
    sequences: int = 1,
    backend: str = "auto",
) -> Run:
    """One layer forward and backward on fresh ranks; results[rank] is what forward saved.

    That is a list of (bytes, digest of their content), one for each storage.
    """

    def on_rank(rank: int, world_size: int) -> list[tuple[int, str]]:
        """What is saved here."""
        weights = random_gpt(2, 2, features, num_heads, 1, dtype=torch.bfloat16).blocks[0]
        layer = transformer_layer(weights, num_heads, way)
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(2, sequences, positions, features, generator=generator).bfloat16()
        x, grad_y = (shard(t, 1).clone() for t in x) if way.startswith("sequence") else x
        _, saved = layer.forward(x)
        held = [(s.nbytes(), _digest(s)) for s in storages(saved)]
        dist.barrier()  # sends nothing, and tells forward from backward in the ledger
        layer.backward(grad_y, saved)
        return held

    return launch(on_rank, 1 if way == "alone" else world_size, backend=backend)


def storages(saved: Any) -> list[torch.UntypedStorage]:
    """What the tensors in nested lists and tuples lie in, each once: views share theirs."""
    found = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in _tensors(saved)}
    return list(found.values())


def _tensors(saved: Any) -> Iterator[Tensor]:
    if isinstance(saved, Tensor):
        yield saved
    elif isinstance(saved, (list, tuple)):
        for item in saved:
            yield from _tensors(item)


def _digest(storage: torch.UntypedStorage) -> str:
    content = torch.empty(0, dtype=torch.uint8).set_(storage)
    return hashlib.sha256(content.numpy().tobytes()).hexdigest()


def saved_bytes(run: Run) -> int:
    """The most that a rank saved."""
    return max(sum(size for size, _ in held) for held in run.results)


def copied_bytes(run: Run) -> int:
    """Of what rank 0 saved: what every other rank saved too, to the bit."""
    others = [{digest for _, digest in held} for held in run.results[1:]]
    return sum(size for size, digest in run.results[0] if all(digest in seen for seen in others))


def predicted_bytes(
    way: str, world_size: float, positions: int, features: int, num_heads: int, sequences: int = 1
) -> float:
    """What a rank saves by formula: the paper's, and the two numbers a token of the norms."""
    tokens, scores = sequences * positions, 2.0 * num_heads * positions
    ranks = 1 if way == "alone" else world_size
    norms = 2 * 2 * tokens / (ranks if way.startswith("sequence") else 1)
    return activation_bytes(way, tokens, features, ranks, scores=scores) + norms


def memory_bars(ways: list[str], world_size: int, title: str = "", **sizes: int) -> CourseFigure:
    """Bytes that a rank saves of one layer, predicted beside counted, a row for each way."""
    from byhand.figures import bytes_bars

    full = {"positions": 24, "features": 48, "num_heads": 24, **sizes}
    formula, weighed = {}, {}
    for way in ways:
        run = run_layer(way, world_size, **full)
        # What no number of ranks divides is copies.
        copies = [predicted_bytes(way, math.inf, **full), copied_bytes(run)]
        saved = [predicted_bytes(way, world_size, **full), saved_bytes(run)]
        for bars, same, whole in zip((formula, weighed), copies, saved, strict=True):
            same *= way != "alone"
            bars[way] = {"copies": same, "its own": whole - same}
    return bytes_bars(formula, weighed, title or None, "saved by a rank", key=True)


def traffic_bars(ways: list[str], world_size: int) -> CourseFigure:
    """Bytes that a rank sends for one layer, forward and backward, predicted beside counted."""
    from byhand.figures import bytes_bars

    formula, ledger = {}, {}
    for way in ways:
        sent = sent_bytes(way, 24, 48, world_size)
        seen = sent_each_way(run_layer(way, world_size))
        for phase in ("forward", "backward"):
            row = f"{way}, {phase}"
            formula[row], ledger[row] = sent[phase], seen[phase]
    return bytes_bars(formula, ledger, key=True)


def loss_as_saved(model: Layer, tokens: Tensor, targets: Tensor, vocabulary: int) -> float:
    """The loss once all ranks have rank 0's norms and positions, as in a checkpoint of its."""
    for parameter, how in zip(model.parameters(), model.placements, strict=True):
        if how == PARTIAL:
            dist.broadcast(parameter, 0)
    return next_token_loss(model.forward(tokens)[0], targets, vocabulary=vocabulary)[0].item()


def time_gather(
    overlapped: bool, world_size: int, network: VirtualNetwork | None, num_steps: int = 5
) -> Run:
    """All tokens gathered and multiplied, at once or in rounds; results[rank]: seconds, by step.

    A rank's tokens are SHARD_BYTES. Its product of a shard sleeps for PRODUCT seconds, and that of
    all shards at once for n times that.
    """

    def on_rank(rank: int, world_size: int) -> list[float]:
        """Seconds of each step here."""
        x, seconds = torch.zeros(SHARD_BYTES // 4, 1), []
        for _ in range(num_steps + 1):  # in the first, ranks connect
            dist.barrier()
            begun = time.monotonic()
            if overlapped:
                gather_while(x, partial(asleep, PRODUCT))
            else:
                asleep(world_size * PRODUCT, gather(x))
            seconds.append(time.monotonic() - begun)
        return seconds[1:]

    return launch(on_rank, world_size, network=network)


def fastest(run: Run) -> tuple[int, float]:
    """The step that other programs disturbed least, and the seconds of its slowest rank."""
    steps = [max(seconds) for seconds in zip(*run.results, strict=True)]
    return steps.index(min(steps)), min(steps)


def gather_picture(run: Run, title: str) -> CourseFigure:
    """The fastest step of `time_gather`, drawn."""
    from byhand.figures import timeline

    step, _ = fastest(run)
    own = (stretches(run, rank)[step + 2] for rank in range(run.world_size))  # step 0 connects
    calls, spans = from_zero(own)
    calls = [call for call in calls if call.op != "barrier"]
    for call in calls:
        call.overlapped = call.op != "all_gather"  # sleep is no computing for the ledger
    took = (seconds[step] for seconds in run.results)
    return timeline(calls, [(b, b + s) for (b, _), s in zip(spans, took, strict=True)], title)


def asleep(seconds: float, x: Tensor) -> Tensor:
    """x, after that long: a product that two cores can make on any number of ranks."""
    time.sleep(seconds)
    return x
