"""A tiny GPT that stops and goes on: in another layout, or with a part of its state forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from byhand.checkpoint import Box
from byhand.checkpoint.boxes import overlap
from byhand.checkpoint.folder import Checkpoint
from byhand.costs.layout import Layout
from byhand.fault_tolerance.training import Training
from byhand.model.gpt import random_gpt
from byhand.model.text import text_batches
from byhand.runtime import launch

NUM_BLOCKS, NUMBER_BYTES = 3, 8


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


def boxes_held(layout: Layout) -> list[dict[str, Box]]:
    """By rank, the box that it holds of each weight."""

    def on_rank(rank: int, world_size: int) -> dict[str, Box]:
        """Its weights' boxes."""
        return {name: shard.box for name, shard in make(layout).weights_held().items()}

    return launch(on_rank, layout.num_ranks).results


LAYERS = ["table", *(f"{half} {b}" for b in range(NUM_BLOCKS) for half in ("attn", "MLP")), "norm"]
ENDS = {"table": 0, "positions": 0, "norm": len(LAYERS) - 1}
Files = dict[str, list[Counter[int]]]  # by row and layer: bytes, by the rank in whose file they lie


def layer_of(name: str) -> int:
    """The place in LAYERS of a weight."""
    first, _, rest = name.partition(".")
    if not first.startswith("block "):
        return ENDS[first]
    of_mlp = rest.partition(".")[0] in ("mlp_norm", "up", "down")
    return 1 + 2 * int(first.removeprefix("block ")) + of_mlp


def files_by_layer(folder: Path, before: Layout, after: Layout) -> tuple[str, dict[str, Files]]:
    """A finding, and by heading the bytes of each layer: of all files, and that each rank reads.

    Of the weights; each in the file of the rank that wrote them.
    """
    weights = {
        name: saved["boxes"]
        for name, saved in Checkpoint(folder).tensors.items()
        if name.partition(" of ")[0] not in ("mean", "mean of squares", "random numbers")
    }
    wrote: Files = {"all": [Counter() for _ in LAYERS]}
    reads: Files = {f"rank {rank}": [Counter() for _ in LAYERS] for rank in range(after.num_ranks)}
    held = boxes_held(after)
    for name, boxes in weights.items():
        layer = layer_of(name)
        for file, _, starts, sizes in boxes:
            writer, box = int(file.removesuffix(".bin")), Box(tuple(starts), tuple(sizes))
            wrote["all"][layer][writer] += NUMBER_BYTES * box.count
            for row, of in zip(reads.values(), held, strict=True):
                if name in of and (shared := overlap(box, of[name])):
                    row[layer][writer] += NUMBER_BYTES * shared.count
    opened = [len(set().union(*layers)) for layers in reads.values()]
    some = f"{min(opened)} to {max(opened)}" if min(opened) < max(opened) else f"{max(opened)}"
    title = f"Each rank reads from {some} of the {before.num_ranks} files"
    return title, {f"saved by {before}": wrote, f"loaded by {after}": reads}
