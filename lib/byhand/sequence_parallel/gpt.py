"""The tiny GPT of byhand.model with everything split: layers by feature, the rest by token."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from byhand.model.gpt import GPT, Parts, gpt_layers
from byhand.model.layer import Layer
from byhand.model.mlp import MLP
from byhand.model.transformer import Residual
from byhand.sequence_parallel.layers import (
    Dropout,
    SequenceParallelAttention,
    SequenceParallelMLP,
    SequenceParallelNorm,
    generators,
)
from byhand.sequence_parallel.tokens import Group
from byhand.sequence_parallel.vocabulary import (
    VocabularyParallelEmbedding,
    VocabularyParallelHead,
    vocabulary_parallel_cross_entropy,
)


def sequence_parallel_gpt(
    weights: GPT, group: Group = None, dropout: float = 0.0, seed: int = 0
) -> MLP:
    """This rank's share of a model: tokens [B, S] replicated -> logits [B, S, V_r] sharded.

    Without dropout it is byhand.model.gpt's, but for where things lie. After the last backward of
    a step comes `sum_partial_gradients`.

    Raises:
        ValueError: heads or hidden features are no multiple of the group's size; the same of S, in
            forward.
    """
    _, own = generators(seed, group, weights.table.device)
    return MLP(gpt_layers(weights, parts=sequence_parallel_parts(group, dropout, own)))


def sequence_parallel_parts(
    group: Group = None, dropout: float = 0.0, own: torch.Generator | None = None
) -> Parts:
    """What `gpt_layers` builds this rank's shard of. own: its random numbers, for the dropout."""

    def residual(layers: list[Layer]) -> Residual:
        """With a dropout at its end."""
        return Residual([*layers, Dropout(dropout, own)] if own and dropout else layers)

    return Parts(
        embedding=partial(VocabularyParallelEmbedding, group=group),
        norm=SequenceParallelNorm,
        attention=partial(SequenceParallelAttention, group=group),
        mlp=partial(SequenceParallelMLP, group=group),
        residual=residual,
        head=lambda table, embedding: VocabularyParallelHead(embedding),
    )


def next_token_loss(
    logits: Tensor, tokens: Tensor, group: Group = None, vocabulary: int | None = None
) -> tuple[Tensor, Tensor]:
    """logits [B, S, V_r], and the tokens [B, S] that follow -> the mean loss, and grad_logits.

    As vocabulary_parallel_cross_entropy, of T = B·S rows.

    >>> def loss(rank, world_size):
    ...     logits = torch.zeros(1, 3, 8).tensor_split(world_size, dim=2)[rank]
    ...     return next_token_loss(logits, torch.tensor([[5, 0, 7]]))[0].item()
    >>> [f"{value:.4f}" for value in launch(loss, 2).results]
    ['2.0794', '2.0794']
    """
    rows = logits.flatten(0, 1), tokens.flatten()
    loss, grad = vocabulary_parallel_cross_entropy(*rows, group, vocabulary)
    return loss, grad.view(logits.shape)
