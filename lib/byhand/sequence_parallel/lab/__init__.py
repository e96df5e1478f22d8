"""One transformer layer split in each way, run, weighed and counted; a tiny GPT trained.

The layer is Korthikanti's: norm, attention, dropout and norm, MLP, dropout, with numbers of two
bytes (bfloat16), so that what it saves can be held against the paper's table. Its attention drops
nothing, so its scores cost 2 bytes and not the paper's 5.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.memory import Recomputed
from byhand.model.gpt import Block, Parts, gpt_layers, next_token_loss, random_gpt
from byhand.model.mlp import GELU, MLP
from byhand.model.optimizers import AdamW
from byhand.model.shards import shard
from byhand.model.text import text_batches
from byhand.model.training import train_alone
from byhand.model.transformer import Residual
from byhand.runtime import Run, launch
from byhand.sequence_parallel.formulas import activation_bytes, check_way
from byhand.sequence_parallel.gpt import sequence_parallel_gpt, sequence_parallel_parts
from byhand.sequence_parallel.layers import Dropout, SequenceColumnLinear, generators
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import sent_each_way, sum_of

if TYPE_CHECKING:  # ranks import this module
    from matplotlib.figure import Figure

PARTS = {"alone": Parts(), "tensor": tensor_parallel_parts(), "sequence": sequence_parallel_parts()}
SIZES = 72, 192, 48  # positions, features, heads of the small layer
TP, KEPT, AGAIN = "tensor", "sequence, kept whole", "sequence, gathered twice"
NAMES = {
    "alone": "one rank",
    TP: "tp",
    KEPT: "tp + sp, u kept whole",
    AGAIN: "tp + sp, gathered twice",
}
INPUTS, MASKS, SCORES = "inputs of the column layers", "masks of the dropouts", "attention's scores"


def code_of(function: Any) -> str:
    """A function's or a class's lines, without its docstrings and what it stands in."""
    source = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n *""".*?"""\n*', "\n", source, flags=re.DOTALL).rstrip()


def transformer_layer(weights: Block, num_heads: int, way: str, recompute: bool = False) -> MLP:
    """Two residuals, each a norm, a split half and a dropout; `way` is one of formulas.WAYS.

    recompute: the scores are not saved, but computed again in backward.
    """
    parts = PARTS[way.partition(",")[0]]
    common, own = generators(0)
    drop = Dropout(0.1, own if way.startswith("sequence") else common)
    heads = parts.attention(weights.qkv, weights.out, num_heads, causal=True)
    hidden = parts.mlp([weights.up, weights.down], GELU)
    for layer in (*heads.layers, *hidden.layers):
        if isinstance(layer, SequenceColumnLinear):
            layer.gather_again = way == "sequence, gathered twice"
    if recompute:
        heads.layers[1] = Recomputed(heads.layers[1])
    halves = (weights.attention_norm, heads), (weights.mlp_norm, hidden)
    return MLP([Residual([parts.norm(*norm), half, drop]) for norm, half in halves])


def run_layer(
    way: str,
    world_size: int,
    positions: int = SIZES[0],
    features: int = SIZES[1],
    num_heads: int = SIZES[2],
    sequences: int = 1,
    backend: str = "auto",
    recompute: bool = False,
) -> Run:
    """One layer forward and backward on fresh ranks; results[rank] is what forward saved.

    That is a list of (what it is, bytes, digest of their content), one for each storage.

    Raises:
        ValueError: `way` is not one of formulas.WAYS.
    """
    check_way(way)

    def on_rank(rank: int, world_size: int) -> list[tuple[str, int, str]]:
        """What is saved here."""
        weights = random_gpt(2, 2, features, num_heads, 1, dtype=torch.bfloat16).blocks[0]
        layer = transformer_layer(weights, num_heads, way, recompute)
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(2, sequences, positions, features, generator=generator).bfloat16()
        x, grad_y = (shard(t, 1).clone() for t in x) if way.startswith("sequence") else x
        _, saved = layer.forward(x)
        named = [(name, s) for name, kept in named_parts(saved).items() for s in storages(kept)]
        held = [(name, s.nbytes(), _digest(s)) for name, s in named]
        assert len(held) == len(storages(saved)), "a storage has two names"
        dist.barrier()  # sends nothing, and tells forward from backward in the ledger
        layer.backward(grad_y, saved)
        return held

    return launch(on_rank, 1 if way == "alone" else world_size, backend=backend)


def named_parts(saved: Any) -> dict[str, list]:
    """What `transformer_layer` saved, by what it is."""
    (norm, (x, heads, mixed), mask), (norm_2, (x_2, *gelu), mask_2) = saved
    heads = list(heads) if isinstance(heads, tuple) else [heads.x]  # else it is recomputed
    return {
        "inputs of the norms": [norm, norm_2],
        INPUTS: [x, x_2],
        MASKS: [mask, mask_2],
        "queries, keys, values, heads": [*heads[:3], mixed],
        SCORES: heads[3:],
        "both sides of the GELU": gelu,
    }


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
    return max(sum(size for _, size, _ in held) for held in run.results)


def copied_bytes(run: Run) -> int:
    """Of what rank 0 saved: what every other rank saved too, to the bit."""
    return sum(size for _, size in _copied(run))


def _copied(run: Run) -> list[tuple[str, int]]:
    """Rank 0's storages that all others have: what they are, and their bytes."""
    others = [{digest for *_, digest in held} for held in run.results[1:]]
    first = run.results[0]
    return [(name, size) for name, size, digest in first if all(digest in o for o in others)]


def copies_table(alone: Run, run: Run, unit: int) -> str:
    """What one rank saves, what each rank of `run` saves, and whether all save the same bits.

    unit: the bytes that are counted as one.
    """
    copied = {name for name, _ in _copied(run)}
    names = list(dict.fromkeys(name for name, *_ in alone.results[0]))
    lines = [f"{'':30} one rank  each of {run.world_size}"]
    for name in names:
        sizes = [sum(s for n, s, _ in one.results[0] if n == name) / unit for one in (alone, run)]
        same = "the same on all ranks" if name in copied else ""
        lines.append(f"{name:30} {sizes[0]:8.1f} {sizes[1]:10.1f}  {same}".rstrip())
    total = saved_bytes(alone) / unit, saved_bytes(run) / unit
    return "\n".join([*lines, f"{'together':30} {total[0]:8.1f} {total[1]:10.1f}"])


def predicted_bytes(
    way: str,
    world_size: float,
    positions: int,
    features: int,
    num_heads: int,
    sequences: int = 1,
    recompute: bool = False,
) -> float:
    """What a rank saves by formula: the paper's, and the two numbers a token of the norms."""
    tokens, scores = sequences * positions, 2.0 * num_heads * positions * (not recompute)
    ranks = 1 if way == "alone" else world_size
    norms = 2 * 2 * tokens / (ranks if way.startswith("sequence") else 1)
    return activation_bytes(way, tokens, features, ranks, scores=scores) + norms


def memory_bars(world_size: int, backend: str = "auto") -> Figure:
    """Bytes that a rank saves of one layer for each token and feature, a row for each way.

    The scores are computed again, so they are not among them.
    """
    from byhand.sequence_parallel.lab.pictures import kept_bars

    rows, ends, (positions, features, _) = {}, {}, SIZES
    for way in (TP, KEPT, AGAIN):
        run = run_layer(way, world_size, backend=backend, recompute=True)
        copies, whole = copied_bytes(run), saved_bytes(run)
        sizes = {"copies": copies, "its own": whole - copies}
        rows[NAMES[way]] = {name: size / positions / features for name, size in sizes.items()}
        predicted = predicted_bytes(way, world_size, *SIZES, recompute=True)
        told = "as predicted" if whole == predicted else f"{predicted:,.0f} predicted"
        ends[NAMES[way]] = f"{whole:,} bytes, {told}"
    return kept_bars(rows, ends)


def units_sent(world_size: int, backend: str = "auto") -> dict[str, dict[str, float]]:
    """What a rank sends for one layer, by way and op, in units of (n-1)/n · T·D numbers."""
    positions, features, _ = SIZES
    unit = 2 * positions * features * (world_size - 1) / world_size
    found = {}
    for way in (TP, KEPT, AGAIN):
        counted = sum_of(sent_each_way(run_layer(way, world_size, backend=backend)))
        found[NAMES[way]] = {op.replace("_", "-"): n / unit for op, n in counted.items()}
    return found


def trained(
    step: Callable, summed: bool, world_size: int, backend: str = "auto"
) -> tuple[list[float], list[float], list[float]]:
    """A tiny GPT, 40 batches: rank 0's losses, one device's, how far copies of a gain are apart.

    All after each step. step: of (model, optimizer, tokens, targets, summed), gives the loss.
    """
    weights = random_gpt(131, 24, 48, 24, 1, dtype=torch.float64)
    batches = text_batches(40, 4, 24)

    def on_rank(rank: int, world_size: int) -> tuple[list[float], Tensor]:
        """Its losses, and its copies of the last norm's gain: a row a step."""
        model = sequence_parallel_gpt(weights)
        optimizer = AdamW(model.parameters(), 0.01)
        losses, gains = [], []
        for batch in batches:
            losses.append(step(model, optimizer, *batch, summed))
            gains.append(model.layers[-2].parameters()[0].clone())
        return losses, torch.stack(gains)

    model = MLP(gpt_layers(weights))
    alone = train_alone(model, AdamW(model.parameters(), 0.01), batches, next_token_loss)
    results = launch(on_rank, world_size, backend=backend).results
    gains = torch.stack([gain for _, gain in results])
    apart = gains.amax(dim=0) - gains.amin(dim=0)
    return results[0][0], alone, apart.amax(dim=1).tolist()


def apart_picture(both: dict[str, list[float]]) -> Figure:
    """How far a gain's copies are apart after each step, with the sum and without it."""
    from byhand.figures import curves

    off, right = both["left out"][-1], both["summed"][-1]
    steps = len(both["summed"])
    title = f"After {steps} steps, copies are {off:.2f} apart without the sum, {right:g} with it"
    return curves(
        both, "step", "largest difference of copies", title, from_zero=True, widths=(2.4,)
    )
