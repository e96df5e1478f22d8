"""All-reduce by hand against gloo's: on this machine, and between hosts with slow links.

    python tests/bench_all_reduce.py [repetitions]

One run. First the table, in the layout of NVIDIA's nccl-tests: sizes from 4 B to 64 MiB on four
ranks, all algorithms taking turns; with a GPU for every rank NCCL's own too. Then links of 25 MB/s
made by the kernel (byhand.VirtualNetwork): two hosts of two ranks, for the bytes that cross; four
hosts of one rank, for which algorithm a fitted model would choose.

algbw = S / time; busbw = algbw × 2(n-1)/n, for reduce-scatter (n-1)/n. Medians of the slowest rank.
All write into memory that is there already. #wrong counts elements that are not the sum, of all
ranks. Ratios above 1 mean that ours is faster.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import partial

import torch
import torch.distributed as dist

from byhand import VirtualNetwork, all_reduce, device, launch
from byhand import all_reduce_plans as plans
from byhand import all_reduce_trees as trees
from byhand.communication_cost import cost
from byhand.communication_fit import fit
from byhand.measure import take_turns
from byhand.runtime import why_no_network

WORLD_SIZE, RANKS_PER_HOST = 4, 2
SIZES = [4 << 2 * i for i in range(13)]  # 4 B to 64 MiB
LINK = 25e6  # bytes per second
HOST_SIZES = [1 << 22, 1 << 24, 1 << 26]
MODEL_SIZES = [4 << 2 * i for i in range(11)]  # to 4 MiB
PLANS = {
    "ring": plans.ring,
    "double_ring": plans.double_ring,
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
    """By name: what all-reduces `tensor` and returns the total; `own` is torch's backend."""
    room = {name: torch.empty_like(tensor) for name in (own, "ours")}

    def torchs():
        dist.all_reduce(room[own])
        return room[own]

    found = {own: torchs}
    for name in PLANS:
        function = getattr(all_reduce, f"{name}_all_reduce")
        found[name] = partial(function, tensor, out=room["ours"])
    found["hierarchical"] = partial(
        all_reduce.hierarchical_all_reduce,
        tensor,
        ranks_per_host=ranks_per_host,
        out=room["ours"],
    )
    return found, lambda: room[own].copy_(tensor)


def shards(tensor):
    """Reduce-scatter, ours and gloo's. gloo's needs room for the result; so does ours, inside."""
    room = tensor.new_empty(len(tensor) // dist.get_world_size())

    def torchs():
        dist.reduce_scatter_tensor(room, tensor)
        return room

    return {"gloo": torchs, "ring": partial(all_reduce.ring_reduce_scatter, tensor)}


def measure(rank, world_size, num_bytes, repetitions, names=None, ranks_per_host=RANKS_PER_HOST):
    """(seconds, wrong elements on this rank) by name."""
    generator = torch.Generator().manual_seed(rank)
    count = num_bytes // 4
    tensor = torch.randint(100, (count,), generator=generator).float().to(device(rank))
    total = tensor.clone()
    dist.all_reduce(total)
    if names == "reduce-scatter":
        chosen, fresh = shards(tensor), None
        total = total.tensor_split(world_size)[rank]
    else:
        everything, fresh = calls(tensor, ranks_per_host, dist.get_backend())
        chosen = {name: f for name, f in everything.items() if names is None or name in names}
    wrong = {}
    for name, call in chosen.items():
        if fresh:
            fresh()
        wrong[name] = int((call() != total).sum())
    timings = take_turns(chosen, repetitions, warm_up=1, before=fresh)
    return {name: (timing.median, wrong[name]) for name, timing in timings.items()}


def on_all(num_bytes, repetitions, names=None, network=None, ranks_per_host=RANKS_PER_HOST):
    """(seconds, wrong elements on all ranks) by name."""
    args = (num_bytes, repetitions, names, ranks_per_host)
    results = launch(measure, WORLD_SIZE, args, deadline=600, network=network).results
    return {
        name: (seconds, sum(result[name][1] for result in results))
        for name, (seconds, _) in results[0].items()
    }


def print_row(name, num_bytes, seconds, wrong, factor):
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
        often = repetitions if num_bytes < 1 << 22 else max(3, repetitions // 3)
        table[num_bytes] = on_all(num_bytes, often)
        for name, (seconds, wrong) in table[num_bytes].items():
            print_row(name, num_bytes, seconds, wrong, factor)
    own = next(iter(table[SIZES[0]]))
    print(f"\n{'size':>10}{'ring over ' + own:>18}{'best over ' + own:>18}  best")
    for num_bytes, row in table.items():
        mine = {name: seconds for name, (seconds, _) in row.items() if name != own}
        best = min(mine, key=mine.get)
        ratios = row[own][0] / mine["ring"], row[own][0] / mine[best]
        print(f"{num_bytes:>10}{ratios[0]:>18.2f}{ratios[1]:>18.2f}  {best}")
    print("aim: ring at least 0.9 of gloo's speed")


def two_hosts():
    network = VirtualNetwork(WORLD_SIZE // RANKS_PER_HOST, RANKS_PER_HOST, LINK)
    print(f"\ntwo hosts of {RANKS_PER_HOST} ranks, {LINK / 1e6:g} MB/s each way\n{HEADER}\n{UNITS}")
    findings = []
    for num_bytes in HOST_SIZES:
        row = on_all(num_bytes, 3, ("gloo", "ring", "hierarchical"), network)
        halves = on_all(num_bytes, 3, "reduce-scatter", network)
        for name, (seconds, wrong) in row.items():
            print_row(name, num_bytes, seconds, wrong, 2 * (WORLD_SIZE - 1) / WORLD_SIZE)
        for name, (seconds, wrong) in halves.items():
            half = (WORLD_SIZE - 1) / WORLD_SIZE
            print_row(f"{name} reduce-scatter", num_bytes, seconds, wrong, half)
        times = [t["gloo"][0] / t[n][0] for t, n in ((halves, "ring"), (row, "hierarchical"))]
        findings.append((num_bytes, times[0], times[1], num_bytes / LINK / row["hierarchical"][0]))
    print(f"\n{'size':>10}  ring / gloo reduce-scatter  hierarchical / gloo  of the bound S/rate")
    for num_bytes, scatter, whole, bound in findings:
        print(f"{num_bytes:>10}{scatter:>28.2f}{whole:>21.2f}{bound:>22.3f}")
    print("aims: 1.5; 1.4; 0.95. The rate counts packets' headers, 0.7 % of the bytes.")


def choose(times, sizes):
    """What a line fitted to every second size chooses at each: (size, chosen, best, loss)."""
    costs = {
        (size, name): cost(
            name, WORLD_SIZE, size, all_reduce.num_blocks(PLANS[name](WORLD_SIZE), size)
        )
        for size in sizes
        for name in PLANS
    }
    known = [(size, name) for size in sizes[::2] for name in PLANS]
    line = fit([costs[key] for key in known], [times[key] for key in known]).line
    chosen = []
    for size in sizes:
        guess = min(PLANS, key=lambda name: line.of(costs[size, name]))
        best = min(PLANS, key=lambda name: times[size, name])
        chosen.append((size, guess, best, times[size, guess] / times[size, best]))
    return line, chosen


def four_hosts():
    network = VirtualNetwork(WORLD_SIZE, 1, LINK)
    times = {}
    for num_bytes in MODEL_SIZES:
        row = on_all(num_bytes, 7 if num_bytes < 1 << 20 else 3, tuple(PLANS), network, 1)
        times.update({(num_bytes, name): seconds for name, (seconds, _) in row.items()})
    line, chosen = choose(times, MODEL_SIZES)
    print(f"\n{WORLD_SIZE} hosts of one rank, {LINK / 1e6:g} MB/s: one line for all algorithms,")
    alpha, rate = 1e6 * line.alpha, 1e-6 / line.beta
    print(f"fitted to every second size: alpha {alpha:.0f} us, {rate:.1f} MB/s")
    print(f"{'size':>10}  {'chosen':20}{'best':20}{'time / best':>12}")
    for num_bytes, guess, best, loss in chosen:
        print(f"{num_bytes:>10}  {guess:20}{best:20}{loss:>12.2f}")
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
