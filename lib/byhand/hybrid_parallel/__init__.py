"""Data, tensor and pipeline parallelism at once: one training step over dp × tp × pp ranks.

step        HybridParallel and its training step: read this
gradients   which gradient is summed over which ranks, and counts in the norm
cost        what a step sends and how long it takes. Pure
layouts     every way to lay out the ranks, and what each costs. Pure
cluster     the fastest layout of a cluster for a large model. Pure
published   ten such models, and how they were run. Pure
lab         what lecture 12 runs and draws
"""

from byhand.hybrid_parallel.step import GROUPS, HybridParallel, HybridStep, chunks_of

__all__ = ["GROUPS", "HybridParallel", "HybridStep", "chunks_of"]
