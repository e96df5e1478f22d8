"""Layers with explicit backward, from a linear one to a tiny GPT; optimizers and data.

layer         Holder and Layer, what all of them have in common: read this, then mlp
mlp           Linear, ReLU, GELU, MLP; the losses
attention     multi-head softmax attention
transformer   embedding, norms, residuals, the tied head
gpt           a tiny GPT of all these
shards        this rank's shard of a tensor; tensors in a flat one
optimizers    SGD, momentum, AdamW
digits, text  what to train on
training      on one device
"""

from byhand.model.layer import Holder, Layer

__all__ = ["Holder", "Layer"]
