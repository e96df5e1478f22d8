"""ZeRO: data parallelism without copies. Every rank keeps 1/n of what all would keep alike.

flat      a unit's parameters as one tensor, cut into equal shards: read this, then stages
stages    shard the optimizer's state (1), the gradients too (2), the parameters too (3)
exchange  another reduce-scatter for them, faster on CPUs
hooks     stage 3 for any nn.Module: what torch's fully_shard does
memory    bytes held and bytes sent, by stage
paper     the lecture's watched step, in milliseconds
lab       what lecture 06 runs and draws
"""

from byhand.zero.flat import Flat, flatten, units
from byhand.zero.hooks import ShardedModule
from byhand.zero.memory import bytes_held, bytes_sent
from byhand.zero.stages import ShardedGradients, ShardedOptimizer, ShardedParameters, clip

__all__ = [
    "Flat",
    "ShardedGradients",
    "ShardedModule",
    "ShardedOptimizer",
    "ShardedParameters",
    "bytes_held",
    "bytes_sent",
    "clip",
    "flatten",
    "units",
]
