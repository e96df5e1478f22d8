"""A training run that can die: all that its next step depends on is in its checkpoint.

    what                    why the next step depends on it                       is saved as
    weights                 they are the model                                    boxes
    Adam's two means        they are its memory of all gradients so far           boxes
    random numbers          each rank drops other features in each step           a row a rank
    place in the data       else rows come twice in an epoch, and others never    extra
    step, Adam's count      learning rates and Adam's correction follow it        extra
    loss scale              in fp16 a wrong one makes steps that are skipped      extra

With another number of ranks random numbers are other ones, for there are not as many rows; all
else goes on as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.checkpoint import Shard, load, newest, save
from byhand.costs.layout import Layout
from byhand.fault_tolerance.places import numbered, shards
from byhand.hybrid_parallel import GROUPS, HybridParallel, chunks_of
from byhand.hybrid_parallel.layouts import schedule_of
from byhand.memory import LossScale, ScaledOptimizer
from byhand.model.gpt import GPT, next_token_loss
from byhand.model.layer import Layer
from byhand.model.optimizers import AdamW
from byhand.model.transformer import Residual
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.sequence_parallel import Dropout
from byhand.tensor_parallel.gpt import tensor_parallel_parts


class Sampler:
    """Which rows the next batch has: every row once an epoch, each epoch in another order."""

    def __init__(self, num_rows: int, batch_rows: int, seed: int = 0):
        self.num_rows, self.batch_rows, self.seed = num_rows, batch_rows, seed
        self.epoch = self.position = 0

    def next(self) -> Tensor:
        """The rows' numbers, the same on all ranks; what is left of an epoch is left out."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.num_rows, generator=generator)
        rows = order[self.position : self.position + self.batch_rows]
        self.position += self.batch_rows
        if self.position + self.batch_rows > self.num_rows:
            self.epoch, self.position = self.epoch + 1, 0
        return rows


class Training:
    """One rank's part of a tiny GPT in training, in any layout of dp, tp and pp."""

    def __init__(
        self,
        weights: GPT,
        layout: Layout,
        data: tuple[Tensor, Tensor],
        batch_rows: int = 16,
        dropout: float = 0.0,
        lr: float = 3e-3,
        seed: int = 0,
    ):
        """On every rank: full weights, and all rows of the data, tokens and those that follow."""
        self.weights, self.layout, self.data = weights, layout, data
        groups = groups_for_this_rank(layout.groups, GROUPS)
        first = dist.get_process_group_ranks(groups["tp"])[0]  # ranks of tp drop the same features
        self.random = torch.Generator().manual_seed(seed + first)

        def residual(layers: list[Layer]) -> Residual:
            """Half a block, with a dropout at its end."""
            return Residual([*layers, Dropout(dropout, self.random)] if dropout else layers)

        parts = replace(tensor_parallel_parts(groups["tp"]), residual=residual)
        chunks, twins = (chunks_of(of, groups, parts=parts) for of in (weights, numbered(weights)))
        self.numbers = [tensor for twin in twins for tensor in twin.parameters()]
        self.adam = AdamW([tensor for chunk in chunks for tensor in chunk.parameters()], lr=lr)
        self.scale = LossScale(every=8)
        self.model = HybridParallel(
            chunks,
            groups,
            schedule_of(layout, batch_rows),
            weights.positions.shape,
            optimizer=lambda _: ScaledOptimizer(self.adam, self.scale),
            loss=self.scaled_loss,
        )
        self.sampler = Sampler(len(data[0]), batch_rows, seed)
        self.step = 0

    def scaled_loss(self, y: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
        """The loss, and its gradient times the scale."""
        loss, grad = next_token_loss(y, *given)
        return loss, self.scale.scale(grad)

    def train(self, num_steps: int) -> Iterator[float]:
        """The loss of every step until so many have been taken since the beginning of the run."""
        while self.step < num_steps:
            rows = self.sampler.next()
            self.model.max_norm = self.scale.value  # 1, of gradients that are scaled
            done = self.model.step(*(tensor[rows] for tensor in self.data))
            self.step += 1
            yield float(done.loss)

    def skip(self, num_batches: int) -> None:
        """Pass over the next batches, as operators do where a loss has jumped; on all ranks."""
        for _ in range(num_batches):
            self.sampler.next()

    def save(self, folder: Path, keep: int | None = 2) -> None:
        """A checkpoint in `folder`, named after the step; called on all ranks."""
        extra = {
            "layout": str(self.layout),
            "step": self.step,
            "optimizer": self.adam.steps,
            "place in the data": [self.sampler.epoch, self.sampler.position],
            "loss scale": self.scale.state(),
        }
        shards = self.weights_held() | self.moments_held() | self.random_held()
        save(folder / f"step-{self.step}", shards, extra, keep=keep)

    def resume(self, folder: Path) -> bool:
        """Go on from the newest whole checkpoint in `folder`, in whatever layout it was saved.

        Returns whether there was one. Called on all ranks; the first chooses.
        """
        chosen = [newest(folder) if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(chosen)  # all ranks load the same one
        if chosen[0] is None:
            return False
        extra = load(chosen[0], self.weights_held() | self.moments_held())
        self.step, self.adam.steps = extra["step"], extra["optimizer"]
        self.sampler.epoch, self.sampler.position = extra["place in the data"]
        self.scale.load(extra["loss scale"])
        if extra["layout"] == str(self.layout):  # then each rank finds its own random numbers
            held = self.random_held()
            load(chosen[0], held)
            self.random.set_state(held["random numbers"].tensor[0])
        return True

    def weights_held(self) -> dict[str, Shard]:
        """This rank's boxes of the weights."""
        return shards(self.model.parameters(), self.numbers, self.weights)

    def moments_held(self) -> dict[str, Shard]:
        """This rank's boxes of Adam's means, which lie as the weights do."""
        means = {"mean": self.adam.mean, "mean of squares": self.adam.square}
        return {
            f"{what} of {name}": shard
            for what, tensors in means.items()
            for name, shard in shards(tensors, self.numbers, self.weights).items()
        }

    def random_held(self) -> dict[str, Shard]:
        """This rank's row of all ranks' states of random numbers."""
        state, rank = self.random.get_state()[None], dist.get_rank()
        shape = (dist.get_world_size(), state.shape[1])
        return {"random numbers": Shard(state, shape, (rank, 0))}
