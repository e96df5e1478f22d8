"""All-reduce by hand against gloo's: on this machine, and between hosts with slow links.

    python tests/benchmarks/all_reduce.py [repetitions]

One run. First the table, in the layout of NVIDIA's nccl-tests: sizes from 4 B to 64 MiB on four
ranks, all algorithms taking turns; with a GPU for every rank NCCL's own too. Then links of 25 MB/s
made by the kernel (byhand.VirtualNetwork): two hosts of two ranks, for the bytes that cross; four
hosts of one rank, for which algorithm a fitted model would choose.

algbw = S / time; busbw = algbw × 2(n-1)/n, for reduce-scatter (n-1)/n. Medians of the slowest rank.
All return a new tensor: gloo reduces a copy in place. #wrong counts elements that are not the sum,
of all ranks. Ratios above 1 mean that ours is faster.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import partial

import torch
import torch.distributed as dist

from byhand import VirtualNetwork, all_reduce, device, launch
from byhand.all_reduce import algorithms, trees
from byhand.communication_cost import cost
from byhand.communication_cost.fit import fit
from byhand.communication_cost.timing import take_turns
from byhand.runtime import why_no_network

WORLD_SIZE, RANKS_PER_HOST = 4, 2
SIZES = [4 << 2 * i for i in range(13)]  # 4 B to 64 MiB
LINK = 25e6  # bytes per second
HOST_SIZES = [1 << 22, 1 << 24, 1 << 26]
MODEL_SIZES = [4 << 2 * i for i in range(11)]  # to 4 MiB
ALGORITHMS = {
    "ring": algorithms.ring,
    "double_ring": algorithms.double_ring,
    "tree": trees.tree,
    "double_tree": trees.double_tree,
    "recursive_doubling": trees.recursive_doubling,
    "halving_doubling": trees.halving_doubling,
}
HEADER = (
    f"{'':20}{'size':>10}{'count':>10}  type  redop{'time':>11}{'algbw':>9}{'busbw':>9}  #wrong"
)
UNITS = f"{'':20}{'(B)':>10}{'(elements)':>10}{'':13}{'(us)':>11}{'(GB/s)':>9}{'(GB/s)':>9}"


def calls(tensor, ranks_per_host, own):
    """By name: what returns the sum of all ranks' `tensor`; `own` is torch's backend."""

    def torchs():
        total = tensor.clone()
        dist.all_reduce(total)
        return total

    found = {own: torchs}
    for name in ALGORITHMS:
        found[name] = partial(getattr(all_reduce, f"{name}_all_reduce"), tensor)
    whole = partial(all_reduce.hierarchical_all_reduce, tensor, ranks_per_host=ranks_per_host)
    return found | {"hierarchical": whole}


def shards(tensor):
    """Reduce-scatter, ours and gloo's. gloo's needs room for the result; so does ours, inside."""
    room = tensor.new_empty(len(tensor) // dist.get_world_size())

    def torchs():
        dist.reduce_scatter_tensor(room, tensor)
        return room

    return {"gloo": torchs, "ring": partial(all_reduce.ring_reduce_scatter, tensor)}


def measure(rank, world_size, num_bytes, repetitions, names=None, ranks_per_host=RANKS_PER_HOST):
    """(timing, wrong elements on this rank) by name."""
    generator = torch.Generator().manual_seed(rank)
    count = num_bytes // 4
    tensor = torch.randint(100, (count,), generator=generator).float().to(device(rank))
    total = tensor.clone()
    dist.all_reduce(total)
    if names == "reduce-scatter":
        chosen = shards(tensor)
        total = total.tensor_split(world_size)[rank]
    else:
        everything = calls(tensor, ranks_per_host, dist.get_backend())
        chosen = {name: f for name, f in everything.items() if names is None or name in names}
    wrong = {name: int((call() != total).sum()) for name, call in chosen.items()}
    timings = take_turns(chosen, repetitions, warm_up=1)
    return {name: (timing, wrong[name]) for name, timing in timings.items()}


def on_all(num_bytes, repetitions, names=None, network=None, ranks_per_host=RANKS_PER_HOST):
    """(timing, wrong elements on all ranks) by name."""
    args = (num_bytes, repetitions, names, ranks_per_host)
    results = launch(measure, WORLD_SIZE, args, deadline=600, network=network).results
    return {
        name: (timing, sum(result[name][1] for result in results))
        for name, (timing, _) in results[0].items()
    }


def print_row(name, num_bytes, timing, wrong, factor):
    seconds = timing.median
    bandwidth = num_bytes / seconds / 1e9
    print(
        f"{name:20}{num_bytes:>10}{num_bytes // 4:>10} float    sum{1e6 * seconds:>11.1f}"
        f"{bandwidth:>9.3f}{factor * bandwidth:>9.3f}{wrong:>8}"
    )


def loopback(repetitions):
    print(f"\nall-reduce on {WORLD_SIZE} ranks of this machine\n{HEADER}\n{UNITS}")
    factor = 2 * (WORLD_SIZE - 1) / WORLD_SIZE
    table = {}
    for num_bytes in SIZES:
        times = repetitions if num_bytes < 1 << 22 else max(3, repetitions // 3)
        table[num_bytes] = on_all(num_bytes, times)
        for name, (timing, wrong) in table[num_bytes].items():
            print_row(name, num_bytes, timing, wrong, factor)
    own = next(iter(table[SIZES[0]]))
    print(f"\n{'size':>10}{'ring over ' + own:>18}{'best over ' + own:>18}  best")
    for num_bytes, row in table.items():
        seconds = {name: timing.median for name, (timing, _) in row.items()}
        best = min((name for name in row if name != own), key=seconds.get)
        ratios = (seconds[own] / seconds[name] for name in ("ring", best))
        print(f"{num_bytes:>10}{next(ratios):>18.2f}{next(ratios):>18.2f}  {best}")
    print("aim: ring at least 0.9 of gloo's speed")


def two_hosts():
    network = VirtualNetwork(WORLD_SIZE // RANKS_PER_HOST, RANKS_PER_HOST, LINK)
    print(f"\ntwo hosts of {RANKS_PER_HOST} ranks, {LINK / 1e6:g} MB/s each way\n{HEADER}\n{UNITS}")
    findings = []
    for num_bytes in HOST_SIZES:
        row = on_all(num_bytes, 3, ("gloo", "ring", "hierarchical"), network)
        halves = on_all(num_bytes, 3, "reduce-scatter", network)
        for name, (timing, wrong) in row.items():
            print_row(name, num_bytes, timing, wrong, 2 * (WORLD_SIZE - 1) / WORLD_SIZE)
        for name, (timing, wrong) in halves.items():
            half = (WORLD_SIZE - 1) / WORLD_SIZE
            print_row(f"{name} reduce-scatter", num_bytes, timing, wrong, half)
        scatter = halves["gloo"][0].median / halves["ring"][0].median
        gloos, ours = (row[name][0].median for name in ("gloo", "hierarchical"))
        findings.append((num_bytes, scatter, gloos / ours, num_bytes / LINK / ours))
    print(f"\n{'size':>10}  ring / gloo reduce-scatter  hierarchical / gloo  of the bound S/rate")
    for num_bytes, scatter, whole, bound in findings:
        print(f"{num_bytes:>10}{scatter:>28.2f}{whole:>21.2f}{bound:>22.3f}")
    print("aims: 1.5; 1.4; 0.95. The rate counts packets' headers, 0.7 % of the bytes.")


def often(num_bytes):
    """How many repetitions: small calls scatter, large ones take long."""
    return 41 if num_bytes < 1 << 17 else 15 if num_bytes < 1 << 20 else 5


def choose(times, sizes):
    """What lines fitted to every second size choose at each; also the lines, by algorithm."""
    costs = {name: {size: cost(name, WORLD_SIZE, size) for size in sizes} for name in ALGORITHMS}
    known = sizes[::2]
    lines = {}
    for name, found in costs.items():
        seconds = [times[size][name].median for size in known]
        lines[name] = fit([found[size] for size in known], seconds).line
    chosen = {size: min(costs, key=lambda n, s=size: lines[n].of(costs[n][s])) for size in sizes}
    return lines, chosen


def overlap(one, other):
    """Whether half of the repetitions of two calls lie in ranges that have something in common."""
    (low, high), (from_, to) = one.quartiles, other.quartiles
    return low <= to and from_ <= high


def four_hosts():
    network = VirtualNetwork(WORLD_SIZE, 1, LINK)
    times = {}
    for size in MODEL_SIZES:
        row = on_all(size, often(size), tuple(ALGORITHMS), network, 1)
        times[size] = {name: timing for name, (timing, _) in row.items()}
    lines, chosen = choose(times, MODEL_SIZES)
    print(f"\n{WORLD_SIZE} hosts of one rank, {LINK / 1e6:g} MB/s: a line for each algorithm,")
    print("fitted to every second size (those without a star)")
    for name, line in lines.items():
        rate = 1e-6 / max(line.beta, 1e-15)
        print(f"{name:20} alpha {1e6 * line.alpha:5.0f} us a round, {rate:6.1f} MB/s")
    print(f"{'size':>11}  {'chosen':20}{'best':20}{'time / best':>12}  quartiles")
    for size, guess in chosen.items():
        row, star = times[size], "*" if size in MODEL_SIZES[1::2] else " "
        best = min(row, key=lambda name: row[name].median)
        loss = row[guess].median / row[best].median
        told = "the same" if guess == best else "overlap" if overlap(row[guess], row[best]) else "-"
        print(f"{size:>10}{star}  {guess:20}{best:20}{loss:>12.2f}  {told}")
    print("aim: at most 1.10")


def report(repetitions: int) -> None:
    """Print everything."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}")
    loopback(repetitions)
    if (why := why_no_network()) is not None:
        print(f"\nno virtual network: {why}")
        return
    two_hosts()
    four_hosts()


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
