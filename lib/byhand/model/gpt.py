"""A tiny GPT: full weights, and any of its layers built from them.

    layer 0                 Embedding
    layers 1, 3, 5, ...     Residual: LayerNorm, Linear, QKNorm, causal attention, Linear
    layers 2, 4, 6, ...     Residual: LayerNorm, Linear, GELU, Linear
    the last two            LayerNorm, TiedHead

`gpt_layers` is given the parts to build of: those of one device, or those of a way to split, which
keep one rank's shard. So one model has one description, and is put together in one place.

Shapes: B sequences, S positions, V tokens, D features, H heads.
Sources: Radford et al. 2019 (GPT-2); Dehghani et al. 2023, arXiv:2302.05442 (queries and keys
normed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from byhand.costs.model import Model, Part
from byhand.model.attention import Heads, MultiHeadAttention
from byhand.model.layer import Layer
from byhand.model.mlp import GELU, MLP, random_weights, softmax_cross_entropy
from byhand.model.transformer import Embedding, LayerNorm, QKNorm, Residual, TiedHead

Pair = tuple[Tensor, Tensor]  # weight, bias; or a norm's gain, bias


@dataclass(frozen=True)
class Block:
    """The full weights of one attention and one MLP, with the norms before and inside."""

    attention_norm: Pair
    qkv: Pair  # [3D, D], [3D]
    gain: Tensor  # [2, 1, D/H], of every head's queries and of its keys
    out: Pair
    mlp_norm: Pair
    up: Pair  # [4D, D], [4D]
    down: Pair


@dataclass(frozen=True)
class GPT:
    """The full weights of a model."""

    table: Tensor  # [V, D]
    positions: Tensor  # [S, D]
    blocks: list[Block]
    norm: Pair
    num_heads: int

    @property
    def num_layers(self) -> int:
        """Of `gpt_layers`."""
        return 2 * len(self.blocks) + 3


def random_gpt(
    num_tokens: int,
    num_positions: int,
    num_features: int,
    num_heads: int,
    num_blocks: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> GPT:
    """Full weights, equal for one seed."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return (0.1 * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype)

    def block(number: int) -> Block:
        """Its linear layers by seeds of their own, its norms by the model's."""
        d = num_features
        qkv, out, up, down = (
            random_weights(sizes, 4 * (seed + number) + k, dtype)[0]
            for k, sizes in enumerate(([d, 3 * d], [d, d], [d, 4 * d], [4 * d, d]))
        )
        gain = 1 + normal(2, 1, d // num_heads)
        return Block(norm(), qkv, gain, out, norm(), up, down)

    def norm() -> Pair:
        return 1 + normal(num_features), normal(num_features)

    table, positions = normal(num_tokens, num_features), normal(num_positions, num_features)
    return GPT(table, positions, [block(n) for n in range(num_blocks)], norm(), num_heads)


@dataclass(frozen=True)
class Parts:
    """The constructors of a GPT's layers: one device's, but for those that are given.

    embedding   table, positions
    norm        gain, bias
    attention   qkv, out, num_heads, causal: a MultiHeadAttention, of which qkv and out are taken
    heads       num_heads (those that this rank has), causal: what stands between the two
    mlp         [up, down], activation
    residual    layers: of either half of a block
    head        table, and the embedding that it is tied to; None where another rank has that
    """

    embedding: Callable[[Tensor, Tensor], Layer] = Embedding
    norm: Callable[[Tensor, Tensor], Layer] = LayerNorm
    attention: Callable[..., MultiHeadAttention] = MultiHeadAttention.from_weights
    heads: Callable[[int, bool], Layer] = Heads
    mlp: Callable[[list[Pair], type[Layer]], Layer] = MLP.from_weights
    residual: Callable[[list[Layer]], Layer] = Residual
    head: Callable[[Tensor, Any], Layer] = TiedHead


ONE_DEVICE = Parts()


def gpt_layers(
    weights: GPT, numbers: Iterable[int] | None = None, parts: Parts = ONE_DEVICE
) -> list[Any]:
    """The layers with these numbers, or all; an embedding and a head built together are tied."""
    layers: list[Layer] = []
    embedding, last = None, weights.num_layers - 1
    for number in range(weights.num_layers) if numbers is None else numbers:
        if number == 0:
            embedding = parts.embedding(weights.table, weights.positions)
            layers.append(embedding)
        elif number < last - 1:
            block = weights.blocks[(number - 1) // 2]
            attends = number % 2 == 1
            inner = _attention(block, weights.num_heads, parts) if attends else _mlp(block, parts)
            layers.append(parts.residual(inner))
        elif number < last:
            layers.append(parts.norm(*weights.norm))
        else:
            layers.append(parts.head(weights.table, embedding))
    return layers


def _attention(block: Block, num_heads: int, parts: Parts) -> list[Layer]:
    split = parts.attention(block.qkv, block.out, num_heads, causal=True)
    heads = parts.heads(split.num_heads, True)
    return [parts.norm(*block.attention_norm), split.qkv, QKNorm(block.gain), heads, split.out]


def _mlp(block: Block, parts: Parts) -> list[Layer]:
    return [parts.norm(*block.mlp_norm), parts.mlp([block.up, block.down], GELU)]


def costs_of(weights: GPT, vocabulary_parallel: bool = False) -> Model:
    """What byhand.costs counts of each of these layers. tp splits the blocks alone.

    vocabulary_parallel: it splits the table too, as byhand.sequence_parallel does.
    """
    (v, d), (s, _), b = weights.table.shape, weights.positions.shape, weights.table.element_size()
    h, norm, ends = weights.num_heads, (d + 1) * b, int(vocabulary_parallel)
    halves: dict[str, Any] = {"by_token": 2 * d, "whole": d, "enters": 1, "leaves": 1, "half": True}
    rows: dict[str, Any] = {"split" if vocabulary_parallel else "whole": v * d}  # the table
    attention = Part(
        "attention",
        split=4 * d * d + 3 * d,
        partial=2 * d // h,
        flops=8 * d * d + 4 * s * d,
        square=4 * s * d,
        saved=((6 * d + 2 * h) * b, norm + d * b),  # q and k normed, q, k, v; what out mixes
        scores=h * s * b,
        kept=(9 * d * b, 4 * d * b),  # what every product with parameters is made of
        ring=h * b,  # a sum for each head; y is what out mixes
        keys=d,
        **halves,
    )
    mlp = Part(
        "mlp",
        split=8 * d * d + 4 * d,
        flops=16 * d * d,
        saved=(8 * d * b, norm + d * b),
        kept=(8 * d * b, 4 * d * b),
        **halves,
    )
    return Model(
        (
            Part(
                "embedding",
                **rows,
                by_token=s * d,
                saved=(0, 8),
                kept=(0, d * b + 8),
                leaves=ends,
            ),
            *(attention, mlp) * len(weights.blocks),
            Part("norm", by_token=2 * d, saved=(0, norm), kept=(0, 2 * d * b)),
            Part(
                "head",
                **rows,
                flops=2 * v * d,
                saved=(0, d * b),
                kept=(0, (v + d) * b),
                sums=3 * ends,
                enters=ends,
                tied=True,
            ),
        ),
        d,
        s,
        b,
        h,
    )


def next_token_loss(
    logits: Tensor, tokens: Tensor, global_batch: int | None = None
) -> tuple[Tensor, Tensor]:
    """logits [B, S, V], and the tokens [B, S] that follow -> this shard's share of the loss, grad.

    The mean is over all positions of the `global_batch` sequences of all ranks (B when None).
    """
    count = tokens.shape[1] * (len(tokens) if global_batch is None else global_batch)
    loss, grad = softmax_cross_entropy(logits.flatten(0, 1), tokens.flatten(), count)
    return loss, grad.view(logits.shape)


def gpt_weights(layers: list[Any], num_heads: int) -> GPT:
    """The weights that all layers of a model hold now: what `gpt_layers` would be given."""
    embedding, *inner, norm, _ = layers
    blocks = []
    for attention, mlp in zip(inner[::2], inner[1::2], strict=True):
        attention_norm, qkv, norm_of_heads, _, out = attention.layers
        mlp_norm, (up, _, down) = mlp.layers[0], mlp.layers[1].layers
        pairs = map(_pair, (out, mlp_norm, up, down))
        blocks.append(Block(_pair(attention_norm), _pair(qkv), norm_of_heads.gain, *pairs))
    return GPT(embedding.table, embedding.positions, blocks, _pair(norm), num_heads)


def _pair(layer: Any) -> Pair:
    weight, bias = layer.parameters()
    return weight, bias
