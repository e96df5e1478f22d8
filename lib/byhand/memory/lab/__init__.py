"""What lecture 15 runs: one step of a GPT, watched while it holds memory; the same step on ranks in
every way that saves some; fp16 at every scale; layers that sleep, and their files.

pictures    what it draws of these
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from byhand.costs import Layout, Model, held
from byhand.hybrid_parallel.step import GROUPS, HybridParallel, chunks_of
from byhand.memory.offload import Offloaded
from byhand.memory.precision import LossScale, MasterWeights
from byhand.memory.prefetch import OffloadedLayers, Tier
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
from byhand.runtime import Run, held_bytes, launch
from byhand.sequence_parallel.gpt import next_token_loss as split_loss
from byhand.sequence_parallel.gpt import sequence_parallel_gpt
from byhand.sequence_parallel.layers import sum_partial_gradients
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import Sleep, stretches
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

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.samples.append(held_bytes())
        return out


@dataclass(repr=False)
class Profile:
    """What a rank held after each operation of a step, in bytes.

    state: of weights, gradients and optimizer; marks: the number of operations before backward, and
    before the optimizer; top: held between forward and backward.
    """

    samples: list[int]
    state: dict[str, int]
    marks: tuple[int, int]
    top: int
    loss: float

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


def nbytes(tensors: Sequence[Tensor]) -> int:
    """Of all of them."""
    return sum(tensor.nbytes for tensor in tensors)


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
        with Sampled() as sampled:
            logits, saved = model.forward(batch[0])
            top = held_bytes() - logits.nbytes
            loss, grad = next_token_loss(logits, batch[1])
            del logits
            middle = len(sampled.samples)
            for layer in reversed(model.layers):
                grad = layer.backward(grad, saved.pop())
            end = len(sampled.samples)
            optimizer.step(model.gradients())
        return Profile(sampled.samples, state, (middle, end), top, float(loss))

    arguments = (model_of(num_blocks=num_blocks), batch_of(num_sequences))
    return launch(on_rank, 1, arguments, memory=True).results[0]


def predicted(num_sequences: int = 4, recompute: str = "none", num_blocks: int = 8) -> dict:
    """The same by byhand.costs.held."""
    layout = Layout(rows=num_sequences, recompute=recompute)
    model = costs_of(model_of(num_blocks=num_blocks))
    return held(model, layout, num_sequences, state=FLOAT32)
