"""Less memory for the same training: recomputation, offload, and numbers of two bytes.

recompute   Recomputed: a layer that saves its input, and runs forward again: read this first
choice      which layers of a chain to recompute under a cap, exactly and greedily. Pure
offload     Offloaded: a layer whose saved tensors lie in a file until backward
precision   a loss scale on which all ranks agree, and master weights
"""

from byhand.memory.choice import LayerCost, cheapest, greedy, held_bytes, work
from byhand.memory.offload import Offloaded
from byhand.memory.precision import LossScale, MasterWeights, ScaledOptimizer
from byhand.memory.recompute import Recomputed

__all__ = [
    "LayerCost",
    "LossScale",
    "MasterWeights",
    "Offloaded",
    "Recomputed",
    "ScaledOptimizer",
    "cheapest",
    "greedy",
    "held_bytes",
    "work",
]
