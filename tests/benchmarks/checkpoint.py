"""A checkpoint saved, and loaded in another cut, over torch.distributed.checkpoint's: taking turns.

    python tests/benchmarks/checkpoint.py [repetitions]

The same tensors, split by rows when they are saved and by columns when they are loaded. Both sync
what they write. All ranks start from a barrier, and the slowest counts. The ratio is the median of
the repetitions' ratios, with its quartiles; beside it the bytes on the disk, ours over theirs.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import checkpoint as torchs
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor
from torch.distributed.tensor import Shard as Split

from byhand import launch
from byhand.checkpoint import Shard, load, save

WORLD_SIZE, REPETITIONS = 2, 10
SIZES = {
    "small: 24 × 64²": (24, 64),
    "medium: 24 × 512²": (24, 512),
    "large: 24 × 1448²": (24, 1448),
}


def shards(rank: int, count: int, width: int, dim: int) -> dict[str, Shard]:
    """This rank's half of each matrix, along a dimension."""
    half = width // dist.get_world_size()
    starts = (rank * half, 0) if dim == 0 else (0, rank * half)
    sizes = (half, width) if dim == 0 else (width, half)
    return {f"w{k}": Shard(torch.rand(sizes), (width, width), starts) for k in range(count)}


def measured(rank: int, n: int, count: int, width: int, repetitions: int, folder: Path):
    """By repetition: seconds of ours and of torch's to save, and to load; bytes of each."""
    mesh = init_device_mesh("cpu", (n,))

    def theirs(dim: int) -> dict[str, torch.Tensor]:
        whole = distribute_tensor(torch.rand(width, width), mesh, [Replicate()])
        return {f"w{k}": whole.redistribute(mesh, [Split(dim)]) for k in range(count)}

    rows, columns = (shards(rank, count, width, dim) for dim in (0, 1))
    their_rows, their_columns = theirs(0), theirs(1)
    found = []
    for turn in range(repetitions + 1):
        ours, torch_s = folder / f"ours-{turn}", folder / f"torch-{turn}"
        calls = [
            lambda at=ours: save(at, rows),
            lambda at=torch_s: torchs.save(their_rows, checkpoint_id=at),
            lambda at=ours: load(at, columns),
            lambda at=torch_s: torchs.load(their_columns, checkpoint_id=at),
        ]
        seconds = []
        for call in calls:
            dist.barrier()
            began = time.perf_counter()
            call()
            took = torch.tensor(time.perf_counter() - began)
            dist.all_reduce(took, dist.ReduceOp.MAX)
            seconds.append(float(took))
        num_bytes = [sum(f.stat().st_size for f in at.iterdir()) for at in (ours, torch_s)]
        dist.barrier()
        if rank == 0:
            shutil.rmtree(ours)
            shutil.rmtree(torch_s)
        found.append((seconds, num_bytes))
    return found[1:]


def main(repetitions: int) -> None:
    """A row for each size."""
    print("| | save: ours, torch's | ratio | load: ours, torch's | ratio | bytes |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (count, width) in SIZES.items():
            run = launch(
                measured, WORLD_SIZE, (count, width, repetitions, Path(folder)), deadline=600
            )
            seconds = [s for s, _ in run.results[0]]
            (ours, theirs) = run.results[0][0][1]
            cells = []
            for mine, other in ((0, 1), (2, 3)):
                ratios = [s[mine] / s[other] for s in seconds]
                low, middle, high = statistics.quantiles(ratios, n=4)
                times = (statistics.median(s[k] for s in seconds) for k in (mine, other))
                cells.append(", ".join(f"{1e3 * t:.1f} ms" for t in times))
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
            print(f"| {name} | {' | '.join(cells)} | {ours / theirs:.3f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
