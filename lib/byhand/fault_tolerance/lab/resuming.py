"""A tiny GPT that stops and goes on: in another layout, or with a part of its state forgotten."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

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

    save: at the end, into the same folder. without: what is forgotten, see `forget`.
    """
    on_rank = partial(_train, layout, num_steps, folder, save, dropout, without)
    return launch(on_rank, layout.num_ranks).results[0]


def _train(
    layout: Layout,
    num_steps: int,
    folder: Path | None,
    save: bool,
    dropout: float,
    without: Collection[str],
    rank: int,
    world_size: int,
) -> list[float]:
    training = make(layout, dropout)
    if folder is not None:
        random = training.random.get_state()
        training.resume(folder)
        forget(training, without, random)
    losses = list(training.train(num_steps))
    if save and folder is not None:
        training.save(folder)
    return losses


def forget(training: Training, what: Collection[str], random: Tensor) -> None:
    """Put some of what was loaded back to how a run begins; `random`: its random numbers then."""
    if "optimizer" in what:
        for mean in (*training.adam.mean, *training.adam.square):
            mean.zero_()
        training.adam.steps = 0
    if "random numbers" in what:
        training.random.set_state(random)
    if "place in the data" in what:
        training.sampler.epoch = training.sampler.position = 0
