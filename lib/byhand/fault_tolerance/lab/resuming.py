"""A tiny GPT that stops and goes on: in another layout, or with a part of its state forgotten."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

import torch

from byhand.checkpoint import Box
from byhand.costs.layout import Layout
from byhand.fault_tolerance.training import Training
from byhand.model.gpt import random_gpt
from byhand.model.text import text_batches
from byhand.runtime import launch

NUM_BLOCKS = 3


def make(layout: Layout, dropout: float = 0.0) -> Training:
    """One rank's part of the run: its weights and its data are always the same."""
    weights = random_gpt(128, 8, 32, 4, NUM_BLOCKS, dtype=torch.float64)
    return Training(weights, layout, text_batches(1, 128, 8)[0], dropout=dropout)


def train(
    layout: Layout,
    num_steps: int,
    folder: Path | None = None,
    save: bool = False,
    dropout: float = 0.0,
    without: Collection[str] = (),
) -> list[float]:
    """The losses of a run in new processes, up to that step, from where `folder` has got to.

    save: at the end, into the same folder. without: see Training.resume.
    """
    on_rank = partial(_train, layout, num_steps, folder, save, dropout, without)
    return launch(on_rank, layout.num_ranks).results[0]


def _train(layout, num_steps, folder, save, dropout, without, rank: int, n: int) -> list[float]:
    training = make(layout, dropout)
    if folder is not None:
        training.resume(folder, without)
    losses = list(training.train(num_steps))
    if save:
        training.save(folder)
    return losses


def boxes_held(layout: Layout) -> list[dict[str, Box]]:
    """By rank, the box that it holds of each weight."""

    def on_rank(rank: int, world_size: int) -> dict[str, Box]:
        """Its weights' boxes."""
        return {name: shard.box for name, shard in make(layout).weights_held().items()}

    return launch(on_rank, layout.num_ranks).results
