"""Right answers to real exercises, written as students really write: each keeps every point."""

from __future__ import annotations

from pathlib import Path

import sample_class
from arena import Case, save
from honest_cases import own
from honest_files import from_colab, from_vscode, saved_outputs

PLOT = "import matplotlib.pyplot as plt\n\n%matplotlib inline\nplt.plot([3, 2, 1])\nplt.show()"
RUN_RANKS = "%load_ext byhand"
SETUP = """def setup(rank: int, world_size: int) -> None:
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)"""
SHIFT = """def shift(rank, world_size, tensor):
    sent, got = tensor.contiguous(), torch.empty(tensor.shape, dtype=tensor.dtype)
    if world_size == 1:
        return sent.clone()
    works = [dist.isend(sent, (rank + 1) % world_size), dist.irecv(got, (rank - 1) % world_size)]
    [work.wait() for work in works]
    return got"""
NEIGHBOURS = """from dataclasses import dataclass


@dataclass(frozen=True)
class Me:
    rank: int
    size: int

    @property
    def right(self) -> int:
        return (self.rank + 1) % self.size

    @property
    def left(self) -> int:
        return (self.rank - 1) % self.size


def me() -> Me:
    return Me(dist.get_rank(), dist.get_world_size())


def exchange(sent, got):
    work = dist.isend(sent, me().right)
    dist.recv(got, me().left)
    work.wait()"""
ALL_GATHER = """%%time
def all_gather(shard, num_rows):
    whole = shard.new_empty(num_rows, *shard.shape[1:])
    shards = whole.tensor_split(me().size)
    shards[me().rank].copy_(shard)
    for step in range(me().size - 1):
        exchange(shards[(me().rank - step) % me().size], shards[(me().rank - step - 1) % me().size])
    return whole"""
IN_A_LIST = {
    "double-ring-all-reduce": (
        "        for message in dist.batch_isend_irecv(calls):\n            message.wait()",
        "        [w.wait() for w in dist.batch_isend_irecv(calls)];"),
    "recursive-doubling-all-reduce": (
        "        sending = dist.isend(total, rank ^ distance)\n"
        "        dist.recv(arrived, rank ^ distance)\n        sending.wait()",
        "        works = [dist.isend(total, rank ^ distance), dist.irecv(arrived, rank ^ distance)]\n"
        "        for w in works: w.wait();"),
}
MEASURED = """t = %timeit -o -q -n 10 -r 3 sum(range(100))
measured = launch(lambda rank, n: dist.all_reduce(torch.ones(1000)), 2)
measured.ledger"""
WAITED = """    for pending, flat, gradients in travelling:
        flat = pending.get_future().wait()[0]"""
TRAINED = """from sklearn.datasets import load_digits
from tqdm.auto import tqdm

torch.manual_seed(0)
x, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
model = torch.nn.Linear(64, 10).double()
for step in tqdm(range(50)):
    loss = F.cross_entropy(model(x.double()), y)
    loss.backward()"""
CUT = """from __future__ import annotations

import functools


def loudly(function, seen: list[str] = []):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        seen.append(function.__name__)
        print(*seen)
        return function(*args, **kwargs)

    return wrapper


@loudly
def cut(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
    return tensor.chunk(dist.get_world_size(), dim=dim)[dist.get_rank()].clone()"""
COLUMN = "def column_shard(weight, bias):\n    return cut(weight), cut(bias)"
ROW = "def row_shard(weight, bias):\n    return cut(weight, dim=1), bias.clone()"
ORDER = """def warm_then_steady(warm, count):
    yield from (("F", i) for i in range(warm))
    for i in range(count - warm):
        yield "F", warm + i
        yield "B", i
    yield from (("B", i) for i in range(count - warm, count))


print(list(warm_then_steady(2, 4)))"""
STEPS = ("""    warm_up = min(depth * (last - rank), count)
    for i in range(count):
        forward(i)
        if i >= warm_up:
            backward(i - warm_up)
    for i in range(count - warm_up, count):
        backward(i)""", """    for kind, i in warm_then_steady(min(depth * (last - rank), count), count):
        (forward if kind == "F" else backward)(i)""")
WORLD = """import numpy as np
import itertools as it

grid = np.arange(8).reshape(2, 2, 2)
pairs = list(it.product(range(2), repeat=2))
grid[0]"""


def habit(name: str, stem: str, change=lambda *_: None, swap=(), **cells: str) -> Case:
    """The solved exercise, with these cells, a piece of text swapped, and the notebook changed."""

    def swapped(notebook, found):
        for id_, (old, text) in dict(swap).items():
            assert old in found[id_]["source"], (stem, old)
            found[id_]["source"] = found[id_]["source"].replace(old, text)
        change(notebook, found)

    return _case(name, stem, lambda: sample_class.solved(stem, **cells), swapped)


def unusual(name: str, stem: str, change) -> Case:
    """The unusual right answers to every task, and the notebook changed."""
    return _case(name, stem, lambda: sample_class.unusual(stem), change)


def _case(name: str, stem: str, make, change) -> Case:
    worth = sample_class.test_points(stem)

    def write(folder: Path, *_) -> None:
        notebook = make()
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        change(notebook, {cell["id"]: cell for cell in notebook["cells"]})
        save(folder, notebook, f"{stem.split('_', 1)[1]}.ipynb")

    return Case(name, write, dict.fromkeys(worth, "passed"), noted=(), assignment=stem, marks=worth)


HABITS = [
    habit("ranks-with-a-plot-and-localhost", "01_ranks", own(
        PLOT, "os.environ['MASTER_ADDR'] = 'localhost'"), setup=SETUP, shift=SHIFT),
    habit("ranks-with-a-slow-cell", "01_ranks", own("import time\n\ntime.sleep(3)", at=5)),
    habit("collectives-with-helpers", "02_collectives", own(NEIGHBOURS, at=3),
          all_gather=ALL_GATHER),
    unusual("collectives-with-ranks-of-its-own", "02_collectives", own(
        f"{RUN_RANKS}\nrun = launch(lambda rank, n: rank, 4)\nprint(run.ledger)",
        "%%ranks 2\nt = torch.ones(2)\ndist.all_reduce(t)\nt", at=3)),
    habit("rings-in-a-list-of-works", "03_all_reduce", from_colab, swap=IN_A_LIST),
    habit("costs-with-measurements", "04_communication_cost", own(MEASURED, at=3)),
    habit("data-parallel-with-futures", "05_data_parallel", from_vscode, swap={
        "backward-in-buckets": ("    for pending, flat, gradients in travelling:\n"
                                "        pending.wait()", WAITED)}),
    habit("data-parallel-beside-training", "05_data_parallel", own(TRAINED, "loss", at=3)),
    habit("tensor-parallel-with-a-decorated-helper", "07_tensor_parallel", own(CUT, at=3),
          column_shard=COLUMN, row_shard=ROW),
    habit("pipeline-with-a-generator", "09_pipeline_parallel", own(ORDER, at=3), swap={
        "one-forward-one-backward-step": STEPS}),
    habit("groups-with-numpy-and-outputs", "11_rank_groups", lambda notebook, cells: (
        own(WORLD, at=3)(notebook, cells), saved_outputs(notebook, cells))),
    habit("hybrid-as-released-with-a-failed-end", "12_hybrid_parallel", own(
        "raise ValueError('to think about later')", after="test-mended-step")),
]
