"""The tiny GPT with a context-parallel axis: what crosses positions, and nothing else, changes.

    context_parallel_parts   attention over the ring; the embedding's rows by position
    ContextHybrid            byhand.hybrid_parallel's step over dp x cp x tp x pp ranks

Linear layers, norms and the head see one position at a time, so they run on a share as they are.
Only three things know where a token stands: attention; the embedding, which adds *its* position;
and the loss, whose mean is over all positions of the sequence. A token's target is the next one,
which at the border of a share is another rank's: x and targets are therefore cut after they have
been shifted against each other, never before.

Every rank of a cp group holds the same weights, and has one term of their gradients: to the sums,
cp is one more kind of data parallelism ("dp-cp" of byhand.rank_groups).
Source: Megatron-LM, megatron/core/transformer/attention.py and parallel_state.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.context_parallel.places import ZIGZAG
from byhand.context_parallel.ring import Group, ring_attention, ring_attention_backward, share
from byhand.hybrid_parallel import GROUPS, HybridParallel
from byhand.model.attention import Heads
from byhand.model.gpt import Parts, next_token_loss
from byhand.model.layer import Layer
from byhand.model.optimizers import AdamW
from byhand.model.transformer import Embedding
from byhand.pipeline_schedules.actions import Actions

CONTEXT_GROUPS = (*GROUPS, "cp", "dp-cp")  # what process_groups.py is to create


class RingHeads(Heads):
    """The attention of every head over the positions of all ranks; no parameters."""

    def __init__(self, num_heads: int, causal: bool, group: Group = None, layout: str = ZIGZAG):
        super().__init__(num_heads, causal)
        self.group, self.layout = group, layout

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        """x [B, s, 3·H·d], all queries, then keys, then values -> y [B, s, H·d]."""
        q, k, v = x.unflatten(2, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)  # [B, H, s, d]
        y, saved = ring_attention(q, k, v, self.group, self.causal, self.layout)
        return y.transpose(1, 2).flatten(2), saved

    def backward_input(self, grad_y: Tensor, saved: Any) -> tuple[Tensor, None]:
        """grad_y [B, s, H·d] -> grad_x [B, s, 3·H·d]."""
        grad_heads = grad_y.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        grads = ring_attention_backward(grad_heads, saved)
        return torch.stack(grads).permute(1, 3, 0, 2, 4).flatten(2), None


class SharedEmbedding(Embedding):
    """Token + position, where the positions are those of this rank's share."""

    def __init__(self, table: Tensor, positions: Tensor, group: Group = None, layout: str = ZIGZAG):
        super().__init__(table, positions)
        self.group, self.layout = group, layout

    def places(self, length: int) -> Tensor:
        """Where in the sequence this rank's `length` positions stand."""
        total = length * dist.get_world_size(self.group)
        every = torch.arange(total, device=self.table.device)
        return share(every, 0, self.group, self.layout)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """tokens [B, s], a share -> y [B, s, D]; saves the tokens."""
        return self.table[tokens] + self.positions[self.places(tokens.shape[1])], tokens

    def backward_weight(self, kept: tuple[Tensor, Tensor]) -> None:
        """Add to the gradients of the table, and of the positions that stand here."""
        grad_y, tokens = kept
        self.grad_table.index_add_(0, tokens.flatten(), grad_y.flatten(0, 1))
        self.grad_positions.index_add_(0, self.places(tokens.shape[1]), grad_y.sum(dim=0))


def context_parallel_parts(parts: Parts, group: Group = None, layout: str = ZIGZAG) -> Parts:
    """These parts, one device's or tensor-parallel ones, for this rank's share of the positions."""
    return replace(
        parts,
        embedding=partial(SharedEmbedding, group=group, layout=layout),
        heads=partial(RingHeads, group=group, layout=layout),
    )


class ContextHybrid(HybridParallel):
    """One rank's part of the GPT in dp x cp x tp x pp, and the step that trains them all."""

    def __init__(
        self,
        chunks: Sequence[Layer],
        groups: dict[str, Group],
        schedule: Actions,
        row_shape: tuple[int, int],
        optimizer: Callable[[list[Tensor]], Any] = AdamW,
        max_norm: float = 1.0,
        *,
        layout: str = ZIGZAG,
    ):
        """As HybridParallel, with groups "cp" and "dp-cp" too; chunks of `context_parallel_parts`.

        row_shape: of one whole sequence, (S, D). layout: that of the chunks' attention and
        embedding. Gradients are summed over dp-cp, rows shared out over dp, positions over cp.
        """
        num_shares = dist.get_world_size(groups["cp"])
        num_positions, num_features = row_shape

        def loss(logits: Tensor, tokens: Tensor, global_batch: int) -> tuple[Tensor, Tensor]:
            return next_token_loss(logits, tokens, num_shares * global_batch)

        sums = {**groups, "dp": groups["dp-cp"]}
        mine = num_positions // num_shares, num_features
        super().__init__(chunks, sums, schedule, mine, optimizer, max_norm, loss)
        self.groups, self.layout = groups, layout

    def rows(self, batch: Tensor) -> Tensor:
        """This replica's rows of the batch [B, S], this rank's positions of them."""
        return share(super().rows(batch), 1, self.groups["cp"], self.layout)
