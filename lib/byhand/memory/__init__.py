"""Less memory for the same training: recomputation, offload, and numbers of two bytes.

recompute   Recomputed: a layer that saves its input, and runs forward again: read this first
choice      which layers of a chain to recompute under a cap, exactly and greedily. Pure
offload     Offloaded: a layer whose saved tensors lie in a file until backward
prefetch    OffloadedLayers: the same for a row of layers, while others compute; OffloadedAdamW
precision   a loss scale on which all ranks agree, and master weights
lab         what lecture 15 runs and draws
"""

from byhand.memory.choice import LayerCost, cheapest, greedy, held_bytes, work
from byhand.memory.offload import Offloaded
from byhand.memory.precision import LossScale, MasterWeights, ScaledOptimizer
from byhand.memory.prefetch import OffloadedAdamW, OffloadedLayers, Tier
from byhand.memory.recompute import Recomputed

__all__ = [
    "LayerCost",
    "LossScale",
    "MasterWeights",
    "Offloaded",
    "OffloadedAdamW",
    "OffloadedLayers",
    "Recomputed",
    "ScaledOptimizer",
    "Tier",
    "cheapest",
    "greedy",
    "held_bytes",
    "work",
]
