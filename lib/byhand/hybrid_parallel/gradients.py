"""Which gradient must be summed over which ranks, and which counts in the norm: by placement.

    placement   example                      gradient after backward    counts in the norm
    SHARDED     weight of a split layer      this shard's, complete     on every tp rank
    REPLICATED  bias after a row, LayerNorm  equal on all tp ranks      on the first tp rank
    PARTIAL     the gains of QK-norm         one term of a sum over tp  on the first tp rank
    TIED        the table of tokens          one of two uses'           ... of the first stage

A replicated parameter needs no message over tp: the gradient that reaches it has been summed
already, by the backward of a column-parallel layer. A partial one sits between a column- and a
row-parallel layer, where each rank sees its own features only. Each layer knows its parameters'
placements: byhand.model.Layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.data_parallel import all_reduce_gradients_flat
from byhand.model.layer import PARTIAL, REPLICATED, SHARDED, TIED, Layer


class Gradients:
    """The gradients of one rank's chunks, and what must happen to them after the last backward."""

    def __init__(self, chunks: Sequence[Layer], groups: Mapping[str, dist.ProcessGroup | None]):
        self.tensors = [tensor for chunk in chunks for tensor in chunk.gradients()]
        self.placements = [how for chunk in chunks for how in chunk.placements]
        self.groups = groups
        counted, first_of_tp = [SHARDED], dist.get_rank(groups["tp"]) == 0
        if first_of_tp:
            counted += [REPLICATED, PARTIAL]
        if first_of_tp and dist.get_rank(groups["pp"]) == 0:
            counted += [TIED]
        self.counted = self.having(*counted)

    def having(self, *kinds: str) -> list[Tensor]:
        """The gradients whose parameters lie in one of these ways."""
        pairs = zip(self.tensors, self.placements, strict=True)
        return [tensor for tensor, how in pairs if how in kinds]

    def sum_over_ranks(self) -> None:
        """Make every gradient that of the global batch, in place: at most three all-reduces.

        Sends 2 (n-1)/n of the partial ones over tp, of all over dp, and, on the first and last
        stage, of the tied ones over embedding. Each is one flat tensor.
        """
        if partial := self.having(PARTIAL):
            all_reduce_gradients_flat(partial, self.groups["tp"])
        all_reduce_gradients_flat(self.tensors, self.groups["dp"])
        tied, ends = self.having(TIED), self.groups.get("embedding")
        if tied and ends is not None and dist.get_world_size(ends) > 1:
            all_reduce_gradients_flat(tied, ends)


def clip(gradients: Gradients, max_norm: float) -> Tensor:
    """Scale all gradients, in place, so that the norm of the whole model's is at most max_norm.

    Returns the norm before: over every parameter of one replica, each counted once, and therefore
    equal on all ranks. One all-reduce of 8 bytes over tp-pp.
    """
    device = gradients.tensors[0].device
    square = torch.zeros((), dtype=torch.float64, device=device)
    for tensor in gradients.counted:
        square += torch.linalg.vector_norm(tensor, dtype=torch.float64).square()
    dist.all_reduce(square, group=gradients.groups["tp-pp"])
    norm = square.sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)  # as clip_grad_norm_ of torch
    for tensor in gradients.tensors:
        tensor.mul_(scale)
    return norm
