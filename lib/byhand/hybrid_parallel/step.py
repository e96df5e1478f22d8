"""Data, tensor and pipeline parallelism at once: one training step over dp x tp x pp ranks.

Nothing here is new but the joints. The layers are byhand.tensor_parallel's, the stages run in
byhand.pipeline_parallel's worker, the batch is shared out and gradients are summed by
byhand.data_parallel's functions, and each of them is given its own group of ranks:

    tp         holds one stage of one replica: activations are summed within it
    pp         holds one replica, a stage each: activations and their gradients pass along it
    dp         holds copies of one shard: gradients are summed over it
    embedding  holds the first and the last stage's copy of a tied weight
    tp-pp      holds one whole replica: the gradients' norm is that of all its ranks together

The loss is the mean over the global batch, so everything is summed and nothing is divided.
Simplified: gradients are summed when the pipeline has run dry, not while it runs.
Sources: Narayanan et al. 2021, arXiv:2104.04473; Megatron-LM, finalize_model_grads.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.hybrid_parallel.gradients import Gradients, clip
from byhand.model.gpt import GPT, Parts, gpt_layers, next_token_loss
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.shards import shard
from byhand.pipeline_parallel import Pipeline, cut, partition
from byhand.pipeline_schedules import Span, loop
from byhand.pipeline_schedules.actions import Actions
from byhand.tensor_parallel.gpt import tensor_parallel_parts

Groups = Mapping[str, dist.ProcessGroup | None]
GROUPS = ("tp", "dp", "pp", "tp-pp", "embedding")  # what process_groups.py is to create


@dataclass
class HybridStep:
    """What a step tells, on every rank: the global loss, the global norm before clipping.

    `spans`: when this rank's stage computed, as in byhand.pipeline_parallel.Step.
    """

    loss: Tensor
    norm: Tensor
    spans: list[Span]


class HybridParallel:
    """One rank's shard of one stage of one replica, and the step that trains them all."""

    def __init__(
        self,
        chunks: Sequence[Any],
        groups: Groups,
        schedule: Actions,
        row_shape: tuple[int, ...],
        optimizer: Callable[[list[Tensor]], Any] = AdamW,
        max_norm: float = 1.0,
        loss: Callable[..., tuple[Tensor, Tensor]] = next_token_loss,
    ):
        """This rank's chunks, as `chunks_of` builds them, and the same schedule on every rank.

        groups: this rank's process groups, "tp", "dp", "pp", "tp-pp" and, on the first and last
        stage, "embedding"; on NCCL also "pp-reverse", a second one of the ranks of "pp".
        row_shape: of one sequence between two stages, (S, D); its dtype is that of the parameters.
        optimizer: made from this rank's parameters; it holds the state of no others.

        Raises:
            ScheduleError, ValueError: see Pipeline.
            ValueError: the schedule's route is no loop, as a V's is not.
        """
        boundary = row_shape, chunks[0].parameters()[0].dtype
        pipes = groups["pp"], groups.get("pp-reverse")
        self.pipeline = Pipeline(chunks, schedule, *boundary, *pipes)
        if self.pipeline.route != loop(len(schedule), len(chunks)):
            raise ValueError(
                "chunks_of shares the layers out in a loop, and the embedding group ties the first "
                "stage to the last; this schedule's route is "
                f"{', '.join(map(str, self.pipeline.route))}"
            )
        self.groups, self.loss, self.max_norm = groups, loss, max_norm
        self.gradients = Gradients(self.pipeline.chunks, groups)
        self.optimizer = optimizer(self.parameters())
        self.is_first = self.pipeline.is_first
        self.is_last = self.pipeline.is_last

    def parameters(self) -> list[Tensor]:
        """This rank's shards and replicas of its stage's parameters."""
        return [tensor for chunk in self.pipeline.chunks for tensor in chunk.parameters()]

    def step(self, x: Tensor, targets: Tensor) -> HybridStep:
        """Train on one global batch, in the schedule's number of micro-batches.

        Every rank is given tensors of the batch's shape; what is in them counts only on the first
        rank of each tp group, x's on the first stage and targets' on the last.
        """
        for chunk in self.pipeline.chunks:
            chunk.zero_gradients()
        m = self.pipeline.num_micro_batches
        # Later stages get activations by message, and need x only to count its rows.
        mine = self.rows(x) if self.is_first else shard(x, 0, self.groups["dp"])
        answers = cut(self.rows(targets), m) if self.is_last else []
        done = self.pipeline.step(cut(mine, m), answers, self.loss, global_batch=len(x))
        self.gradients.sum_over_ranks()
        norm = clip(self.gradients, self.max_norm)
        self.optimizer.step(self.gradients.tensors)
        return HybridStep(self.global_loss(done.loss), norm, done.spans)

    def rows(self, batch: Tensor) -> Tensor:
        """The rows of this replica, as the first rank of the tp group has them.

        Ranks of one tp group compute parts of the same product, so they must have the same rows.
        One broadcast of those rows over tp.
        """
        rows = shard(batch, 0, self.groups["dp"]).to(self.pipeline.device, copy=True)
        dist.broadcast(rows, group=self.groups["tp"], group_src=0)
        return rows

    def global_loss(self, share: Tensor | None) -> Tensor:
        """The mean loss over the global batch, on every rank: one all-reduce of 8 bytes.

        Each replica's share counts once: that of the first tensor-parallel rank of its last stage.
        """
        total = torch.zeros((), dtype=torch.float64, device=self.pipeline.device)
        if share is not None and dist.get_rank(self.groups["tp"]) == 0:
            total += share
        dist.all_reduce(total)
        return total


def chunks_of(
    weights: GPT,
    groups: Groups,
    num_chunks: int = 1,
    costs: Sequence[float] | None = None,
    parts: Parts | None = None,
) -> list[MLP]:
    """This rank's shard of its stage's layers of the model, in that many chunks.

    costs: what each of the model's layers costs, see byhand.pipeline_parallel.partition. parts:
    what they are built of; by default byhand.tensor_parallel's, over groups["tp"].
    """
    stage, pp = dist.get_rank(groups["pp"]), dist.get_world_size(groups["pp"])
    numbers = partition(weights.num_layers, pp * num_chunks, costs)[stage::pp]
    parts = parts or tensor_parallel_parts(groups["tp"])
    return [MLP(gpt_layers(weights, some, parts)) for some in numbers]
