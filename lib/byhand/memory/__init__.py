"""Memory: what backward needs is made again, and numbers of half the bytes still train.

recompute   Recomputed: a layer that saves its input, and runs forward again: read this first
choice      which layers of a chain to recompute under a cap, exactly and greedily. Pure
precision   a loss scale on which all ranks agree, and master weights
"""

from byhand.memory.choice import LayerCost, cheapest, greedy, held_bytes, work
from byhand.memory.precision import LossScale, MasterWeights, ScaledOptimizer
from byhand.memory.recompute import Recomputed

__all__ = [
    "LayerCost",
    "LossScale",
    "MasterWeights",
    "Recomputed",
    "ScaledOptimizer",
    "cheapest",
    "greedy",
    "held_bytes",
    "work",
]
