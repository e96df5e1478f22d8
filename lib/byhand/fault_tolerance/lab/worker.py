"""What torchrun starts, again and again: a training run that goes on where its checkpoint is.

    torchrun --standalone --nproc-per-node 2 --max-restarts 3 \\
        -m byhand.fault_tolerance.lab.worker FOLDER STEPS EVERY [PATIENCE]

A rank that takes no step for PATIENCE seconds ends itself, and says where it was: of ranks that
hang nobody else would know. The first step has 300 seconds at least, for ranks that start on a busy
host wait long for each other, and do not hang. Each rank also writes a diary, one line of JSON for
each thing that it has done, by the wall clock.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch
from torch.distributed.elastic.multiprocessing.errors import record

from byhand import cleanup, setup
from byhand.costs.layout import Layout
from byhand.fault_tolerance.training import Training
from byhand.model.gpt import random_gpt
from byhand.model.text import text_batches

SECONDS = 0.03  # that a step sleeps, as if the device were slow
PATIENCE = 300.0  # a watchdog's, in seconds


class Diary:
    """Lines {"rank", "restart", "what", "when", ...} in a file of this rank's own."""

    def __init__(self, folder: Path, rank: int, world_size: int):
        restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        self.about = {"rank": rank, "of": world_size, "restart": restart, "pid": os.getpid()}
        self.file = open(folder / f"diary-{rank}.jsonl", "a", buffering=1)

    def note(self, what: str, when: float | None = None, **more: object) -> None:
        """One line, on its way to the file at once: who writes it may be dead in a moment."""
        line = {**self.about, "what": what, "when": when or time.time(), **more}
        self.file.write(json.dumps(line) + "\n")


def began() -> float:
    """When this process was started, by the wall clock; psutil alone knows it to a second."""
    if sys.platform != "linux":
        return psutil.Process().create_time()
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def make(layout: Layout) -> Training:
    """The run: its weights, its data, and a dropout."""
    weights = random_gpt(128, 16, 32, 4, 2, dtype=torch.float64)
    data = text_batches(1, 512, 16)[0]
    return Training(weights, layout, data, dropout=0.1)


def go_on(training: Training, folder: Path, num_steps: int, every: int) -> Iterator[float]:
    """Train on from the last whole checkpoint, if any; the loss of each step."""
    training.resume(folder)
    for loss in training.train(num_steps):
        if training.step % every == 0:
            training.save(folder)
        yield loss


@record  # what it raises goes into a file, from which torchrun tells it
def main(folder: Path, num_steps: int, every: int, patience: float = PATIENCE) -> None:
    """This rank's part: the same at the first start and at every later one."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    diary = Diary(folder, rank, world_size)
    diary.note("started", began())
    diary.note("imported")
    faulthandler.dump_traceback_later(max(patience, PATIENCE), exit=True)  # until the first step
    setup(rank, world_size)
    diary.note("joined")
    training = make(Layout(dp=world_size))
    for loss in go_on(training, folder, num_steps, every):
        faulthandler.dump_traceback_later(patience, exit=True)  # unless the next step is sooner
        diary.note("step", step=training.step, loss=loss)
        time.sleep(SECONDS)
    faulthandler.cancel_dump_traceback_later()
    cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]), *map(float, sys.argv[4:]))
