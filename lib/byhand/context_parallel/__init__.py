"""Context parallelism: one sequence, split by position over ranks.

places     which rank holds which positions, and what its queries see. Pure: read this first
blocks     attention a block of keys at a time: the online softmax
ring       keys and values go round, and their gradients come home: read this
fused      a block by torch's own kernel, faster
heads      Ulysses: all positions of some heads; and its mix with the ring
gathered   gather all keys and values: Llama 3's way
scores     RingQK and RingAV: the first ring attention, which keeps every score
gpt        positions and the loss right at the borders; the step of hybrid_parallel with a cp axis
cost       what each way sends and holds, and how long it takes. Pure
lab        what lecture 13 runs, draws and lets one drag
"""

from byhand.context_parallel.gathered import gathered_attention, gathered_attention_backward
from byhand.context_parallel.gpt import CONTEXT_GROUPS, ContextHybrid, context_parallel_parts
from byhand.context_parallel.heads import (
    mixed_attention,
    mixed_attention_backward,
    ulysses_attention,
    ulysses_attention_backward,
)
from byhand.context_parallel.ring import ring_attention, ring_attention_backward, share
from byhand.context_parallel.scores import scores_attention, scores_attention_backward

__all__ = [
    "CONTEXT_GROUPS",
    "ContextHybrid",
    "context_parallel_parts",
    "gathered_attention",
    "gathered_attention_backward",
    "mixed_attention",
    "mixed_attention_backward",
    "ring_attention",
    "ring_attention_backward",
    "scores_attention",
    "scores_attention_backward",
    "share",
    "ulysses_attention",
    "ulysses_attention_backward",
]
