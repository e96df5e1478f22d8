"""Sequence parallelism: between the split layers of tensor parallelism, each rank has its tokens.

    SequenceColumnLinear       gathers the tokens of x, then is split by column
    SequenceRowLinear          split by row; its sum leaves each rank the tokens that are its own
    SequenceParallelMLP        column, activation, row
    SequenceParallelAttention  queries, keys, values by column, heads, output by row
    SequenceParallelNorm       on this rank's tokens: the gradients of gain and bias are *partial*
    Dropout                    with this rank's own random numbers
    sum_partial_gradients      what must follow the last backward of a step

A tensor-parallel layer sends an all-reduce where it ends. Here that is cut in two, a reduce-scatter
where a split layer ends and an all-gather where the next one begins. The bytes are the same; norm,
dropout and residual in between work on S/n positions, and so does all that they save.

Placements: *replicated*, *sharded* by token or by feature, *partial* (one term of a sum).
Shapes: B sequences, S positions, I input and O output features, n ranks in `group`. Every layer is
built from full weights and keeps its shard.
Source: Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.data_parallel import all_reduce_gradients_flat
from byhand.model.layer import PARTIAL, Layer
from byhand.model.mlp import Linear
from byhand.model.transformer import LayerNorm
from byhand.sequence_parallel.tokens import (
    Group,
    gather,
    reduce_scatter,
    start_gather,
    start_reduce_scatter,
)
from byhand.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    TensorParallelAttention,
    TensorParallelMLP,
)

Pair = tuple[Tensor, Tensor]
OWN_SEED = 2718  # so far from the common seed are those of the ranks, as in Megatron


class SequenceColumnLinear(ColumnParallelLinear):
    """y_r = x W_rᵀ + b_r, for the tokens of all ranks; x comes as this rank's tokens.

    gather_again: save this rank's tokens of x only, and gather them a second time in backward.
    With False the whole x is saved: n times the memory, an all-gather less.
    """

    gather_again = True

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, S/n, I] sharded by token -> y [B, S, O/n] sharded by feature; saves x.

        Sends (n-1)/n · B·S·I elements per rank: one all-gather.
        """
        self.check_input(x)
        y, whole = super().forward(gather(x, self.group))
        return y, x if self.gather_again else whole

    def backward(self, grad_y: Tensor, saved: Tensor) -> Tensor:
        """grad_y [B, S, O/n] -> grad_x [B, S/n, I] sharded by token. Adds to the gradients.

        Sends a reduce-scatter, and with `gather_again` an all-gather, of (n-1)/n · B·S·I elements
        each: the all-gather under way while grad_x is computed, the reduce-scatter during the
        weight's gradient.
        """
        gathered = start_gather(saved, self.group) if self.gather_again else lambda: saved
        grad_x = grad_y @ self.weight  # of all tokens, partial; meanwhile x travels
        x = gathered()
        scattered = start_reduce_scatter(grad_x, self.group)
        Linear.backward_weight(self, (grad_y, x))  # meanwhile the sums of grad_x travel
        return scattered()

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, Pair]:
        """grad_y [B, S, O/n] -> grad_x [B, S/n, I]: one reduce-scatter; keeps grad_y and x."""
        return reduce_scatter(grad_y @ self.weight, self.group), (grad_y, saved)

    def backward_weight(self, kept: Pair) -> None:
        """Add to the gradients. With `gather_again` sends one all-gather."""
        grad_y, saved = kept
        super().backward_weight((grad_y, gather(saved, self.group) if self.gather_again else saved))


class SequenceRowLinear(RowParallelLinear):
    """y = Σ_r x_r W_rᵀ + b, of which this rank keeps its tokens.

    The gradient of b is summed from the gathered grad_y, so it is replicated.
    """

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, S, I/n] sharded by feature -> y [B, S/n, O] sharded by token; saves x.

        Sends (n-1)/n · B·S·O elements per rank: one reduce-scatter.
        """
        self.check_input(x)
        y = reduce_scatter(x @ self.weight.T, self.group)
        y += self.bias  # once a token: on the rank that has it
        return y, x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, Pair]:
        """grad_y [B, S/n, O] sharded by token -> grad_x [B, S, I/n] sharded by feature.

        Sends (n-1)/n · B·S·O elements per rank: one all-gather. `backward_weight` sends nothing.
        """
        return super().backward_input(gather(grad_y, self.group), saved)


class SequenceParallelMLP(TensorParallelMLP):
    """Linear layers in pairs, by column and by row; x and y [B, S/n, D] are sharded by token.

    Each pair sends an all-gather and a reduce-scatter forward; backward these two again, and one
    all-gather more, of the inputs that were not saved whole.

    >>> def step(rank, world_size, pairs):
    ...     mlp = SequenceParallelMLP(pairs)
    ...     y, saved = mlp.forward(torch.ones(1, 8 // world_size, 16))
    ...     mlp.backward(y, saved)
    >>> pairs = [(torch.ones(64, 16), torch.zeros(64)), (torch.ones(16, 64), torch.zeros(16))]
    >>> events = launch(step, 2, (pairs,)).ledger.select(rank=0)
    >>> [event.op for event in events]
    ['all_gather', 'reduce_scatter', 'all_gather', 'all_gather', 'reduce_scatter']
    """

    column, row = SequenceColumnLinear, SequenceRowLinear


class SequenceParallelAttention(TensorParallelAttention):
    """Multi-head attention with H/n of the H heads on each rank, each over all S positions.

    x and y [B, S/n, D] are sharded by token. It sends what SequenceParallelMLP does for one pair.
    """

    column, row = SequenceColumnLinear, SequenceRowLinear


class SequenceParallelNorm(LayerNorm):
    """LayerNorm of this rank's tokens. Each token is normed by itself, so nothing is sent.

    But gain and bias are every token's: a rank's grad_gain and grad_bias are one term of the sum.

    >>> norm = SequenceParallelNorm(torch.ones(4), torch.zeros(4))
    >>> norm.forward(torch.tensor([[[1.0, 1.0, 3.0, 3.0]]]))[0], norm.placements
    (tensor([[[-1.0000, -1.0000,  1.0000,  1.0000]]]), ['partial', 'partial'])
    """

    holds = {"gain": PARTIAL, "bias": PARTIAL}


class Dropout(Layer):
    """y = x ∘ m / (1 - p): each entry of m is 0 with probability p, else 1.

    Its generator must draw the same on all ranks where x is replicated, and another mask on each
    where x is sharded: see `generators`.

    >>> layer = Dropout(0.5, torch.Generator().manual_seed(0))
    >>> y, saved = layer.forward(torch.ones(6))
    >>> y, layer.backward(torch.ones(6), saved).equal(y)
    (tensor([0., 2., 0., 0., 0., 2.]), True)
    """

    def __init__(self, p: float, generator: torch.Generator):
        """Drop with probability p.

        Raises:
            ValueError: p is not at least 0 and below 1.
        """
        if not 0 <= p < 1:
            raise ValueError(f"a probability of {p} to drop: it must be at least 0 and below 1")
        self.p, self.generator = p, generator

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x -> y, of the same shape; saves the mask, one byte an entry."""
        mask = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.p
        return x * mask / (1 - self.p), mask

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, None]:
        """grad_y -> grad_x = grad_y ∘ m / (1 - p)."""
        return grad_y * saved / (1 - self.p), None


def generators(
    seed: int, group: Group = None, device: str | torch.device = "cpu"
) -> tuple[torch.Generator, torch.Generator]:
    """Two generators of random numbers: one the same on all ranks, one of this rank's own.

    The first is for replicated tensors, the second for sharded ones. Sends nothing.

    >>> def draw(rank, world_size):
    ...     same, own = generators(seed=0)
    ...     return torch.randint(100, (2,), generator=same), torch.randint(100, (2,), generator=own)
    >>> (same, mine), (also, other) = launch(draw, 2).results
    >>> same.equal(also), mine.equal(other)
    (True, False)
    """
    common, own = torch.Generator(device), torch.Generator(device)
    return common.manual_seed(seed), own.manual_seed(seed + OWN_SEED + dist.get_rank(group))


def sum_partial_gradients(model: Layer, group: Group = None) -> None:
    """Sum over ranks, in place, the gradients of all PARTIAL parameters: partial -> replicated.

    Once a step, after the last backward: one flat all-reduce of 2 (n-1)/n of their bytes per rank.
    """
    pairs = zip(model.gradients(), model.placements, strict=True)
    if partial := [gradient for gradient, how in pairs if how == PARTIAL]:
        all_reduce_gradients_flat(partial, group)
