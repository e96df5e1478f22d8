"""Sequence parallelism, and the two ends of a language model split by vocabulary.

tokens       all-gather and reduce-scatter of tokens: where the two regions meet
layers       the split layers between them, norm, dropout: read this
vocabulary   embedding, head and loss without full logits: and this
gpt          the tiny GPT made of all these
operators    g and ḡ for autograd
overlap      gather and product at once, in rounds of a ring
formulas     what a layer saves and sends. Pure
lab          what lecture 08 runs and draws
"""

from byhand.sequence_parallel.gpt import next_token_loss, sequence_parallel_gpt
from byhand.sequence_parallel.layers import (
    Dropout,
    SequenceColumnLinear,
    SequenceParallelAttention,
    SequenceParallelMLP,
    SequenceParallelNorm,
    SequenceRowLinear,
    generators,
    sum_partial_gradients,
)
from byhand.sequence_parallel.tokens import gather, reduce_scatter
from byhand.sequence_parallel.vocabulary import (
    VocabularyParallelEmbedding,
    VocabularyParallelHead,
    vocabulary_parallel_cross_entropy,
)

__all__ = [
    "Dropout",
    "SequenceColumnLinear",
    "SequenceParallelAttention",
    "SequenceParallelMLP",
    "SequenceParallelNorm",
    "SequenceRowLinear",
    "VocabularyParallelEmbedding",
    "VocabularyParallelHead",
    "gather",
    "generators",
    "next_token_loss",
    "reduce_scatter",
    "sequence_parallel_gpt",
    "sum_partial_gradients",
    "vocabulary_parallel_cross_entropy",
]
