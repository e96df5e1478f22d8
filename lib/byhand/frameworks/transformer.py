"""The course's tiny GPT as an nn.Module: what frameworks are given. The same weights, no backward.

Its modules lie one after the other in an nn.Sequential, so a pipeline's stage is a slice of it:

    model[0]                Embedding
    model[1] to model[L]    Block: attention and MLP, each with its norm and its residual
    model[L + 1]            nn.LayerNorm
    model[L + 2]            TiedHead, which holds the embedding's own table

Queries, keys and values are three linear layers here and one in byhand.model.gpt: DTensor splits a
weight into equal ranges of rows, and a third of the ranks would have queries alone.

Shapes: B sequences, S positions, V tokens, D features, H heads of d features.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from byhand.model import gpt
from byhand.model.transformer import EPSILON


def transformer(weights: gpt.GPT) -> Any:
    """The nn.Sequential that computes what `gpt_layers(weights)` does, of copies of its weights."""
    embedding = Embedding(weights.table, weights.positions)
    blocks = [Block(block, weights.num_heads) for block in weights.blocks]
    return nn.Sequential(embedding, *blocks, norm(weights.norm), TiedHead(embedding.table))


def blocks_of(model: nn.Sequential) -> list[Block]:
    """What lies between the embedding and the last norm, or what of it a slice of a model has."""
    return [module for module in model if isinstance(module, Block)]


class Embedding(nn.Module):
    """tokens [B, S] -> the tokens' and the positions' vectors, added: [B, S, D]."""

    def __init__(self, table: Tensor, positions: Tensor):
        super().__init__()
        self.table = nn.Parameter(table.clone())
        self.positions = nn.Parameter(positions.clone())

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.table) + self.positions[: tokens.shape[1]]


class Attention(nn.Module):
    """Causal, of as many heads as the features that arrive make; queries and keys are normed."""

    def __init__(self, block: gpt.Block):
        """The gain [2, 1, d] that all heads share becomes two parameters [d] of two norms."""
        super().__init__()
        pairs = zip(block.qkv[0].chunk(3), block.qkv[1].chunk(3), strict=True)
        self.q, self.k, self.v = (linear(pair) for pair in pairs)
        self.q_norm, self.k_norm = (head_norm(gain.squeeze(0)) for gain in block.gain)
        self.out = linear(block.out)

    def forward(self, x: Tensor) -> Tensor:
        """[B, S, D] -> [B, S, D]: all heads, mixed."""
        head = -1, len(self.q_norm.weight)
        q, k, v = (split(x).unflatten(2, head) for split in (self.q, self.k, self.v))
        q, k = self.q_norm(q), self.k_norm(k)  # [B, S, H, d]
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """x -> x + attention(norm(x)) -> x + mlp(norm(x))."""

    def __init__(self, block: gpt.Block, num_heads: int):
        super().__init__()
        self.attention_norm, self.attention = norm(block.attention_norm), Attention(block)
        self.mlp_norm, self.up, self.down = (
            norm(block.mlp_norm),
            linear(block.up),
            linear(block.down),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class TiedHead(nn.Module):
    """x [B, S, D] -> the scores of all tokens [B, S, V], by the embedding's table."""

    def __init__(self, table: nn.Parameter):
        super().__init__()
        self.table = table  # the same parameter under two names: torch counts it once

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.table)


def linear(pair: gpt.Pair) -> nn.Linear:
    """nn.Linear with copies of a weight [O, I] and a bias [O]."""
    features_out, features_in = pair[0].shape
    made = nn.Linear(features_in, features_out, dtype=pair[0].dtype)
    return _filled(made, pair)


def norm(pair: gpt.Pair) -> nn.LayerNorm:
    """nn.LayerNorm with copies of a gain and a bias [D]."""
    return _filled(nn.LayerNorm(len(pair[0]), eps=EPSILON, dtype=pair[0].dtype), pair)


def head_norm(gain: Tensor) -> nn.RMSNorm:
    """nn.RMSNorm of a head's features, with a copy of its gain [d]."""
    made = nn.RMSNorm(len(gain), eps=EPSILON, dtype=gain.dtype)
    with torch.no_grad():
        made.weight.copy_(gain)
    return made


def _filled(module: Any, pair: gpt.Pair) -> Any:
    with torch.no_grad():
        module.weight.copy_(pair[0])
        module.bias.copy_(pair[1])
    return module
