"""A mixture of experts' step, by hand over torch's autograd; and flat dispatch over two levels.

    python tests/benchmarks/expert_parallel.py [repetitions]

One step is forward and backward (gradients of weights and of x) on 2 ranks of one thread each, with
4 experts each and k = 2. The rival does the same with autograd and torch's functional all-to-all.
In one launch they take turns; a repetition's ratio is the time of the slower rank by hand over the
slower rank's with autograd. Below 1.00 is faster than autograd. By hand twice: with the course's
GELU, whose formula is several passes over memory, and with torch's kernel in its place.

Then 32 experts, k = 8, on two hosts of 4 ranks: flat dispatch over dispatch in two levels, seconds
of the fastest step and bytes between the hosts as the kernel counts them.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

import torch
import torch.distributed as dist
from memory import FusedGELU
from torch.nn import functional as F

from byhand import VirtualNetwork, launch
from byhand.communication_cost.timing import take_turns
from byhand.expert_parallel import ExpertParallelMLP, Router, lab
from byhand.expert_parallel.training import random_experts
from byhand.model.mlp import GELU
from byhand.runtime import why_no_network

WORLD_SIZE, NUM_EXPERTS, TOP_K, REPETITIONS = 2, 8, 2, 15
SHAPES = {"small": (64, 32, 64), "medium": (512, 128, 256), "large": (1024, 512, 1024)}


def by_hand(activation, gate, experts, x, grad_y):
    """One step of byhand's ExpertParallelMLP."""
    layer = ExpertParallelMLP(Router(gate, TOP_K), experts, activation=activation)

    def step():
        layer.zero_gradients()
        y, saved = layer.forward(x)
        return y, layer.backward(grad_y, saved)

    return step, lambda: [layer.router.grad_weight, *layer.experts.gradients()]


def with_autograd(gate, experts, x, grad_y):
    """The same by autograd: rows sorted by expert, and torch's functional all-to-all."""
    from torch.distributed._functional_collectives import all_to_all_single_autograd

    each = NUM_EXPERTS // WORLD_SIZE
    first = dist.get_rank() * each
    pairs = [pair for expert in experts[first : first + each] for pair in expert]
    leaves = [t.clone().requires_grad_() for t in (gate, *(t for pair in pairs for t in pair))]
    x = x.clone().requires_grad_()

    def forward():
        router, *own = leaves
        weights, chosen = (x @ router.T).topk(TOP_K, dim=1)
        weights = weights.softmax(dim=1)
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=NUM_EXPERTS)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        sends = counts.view(WORLD_SIZE, -1).sum(dim=1).tolist()
        receives = arriving.view(WORLD_SIZE, -1).sum(dim=1).tolist()
        group = dist.group.WORLD
        rows = all_to_all_single_autograd(x[order // TOP_K], receives, sends, group)
        which = torch.arange(each).repeat(WORLD_SIZE).repeat_interleave(arriving)
        sort = which.argsort(stable=True)
        parts = rows[sort].split(arriving.view(WORLD_SIZE, -1).sum(dim=0).tolist())
        made = [
            F.linear(F.gelu(F.linear(part, *own[4 * e : 4 * e + 2])), *own[4 * e + 2 : 4 * e + 4])
            for e, part in enumerate(parts)
        ]
        back = torch.cat(made)[sort.argsort()]
        back = all_to_all_single_autograd(back, sends, receives, group)
        back = weights.flatten()[order, None] * back
        return torch.zeros_like(x).index_add(0, order // TOP_K, back)

    def step():
        for leaf in (x, *leaves):
            leaf.grad = None
        y = forward()
        y.backward(grad_y)
        return y.detach(), x.grad

    return step, lambda: [leaf.grad for leaf in leaves]


def race(rank, world_size, gate, experts, x, grad_y, repetitions):
    """The times of all, after checking that they compute the same."""
    mine = x.tensor_split(world_size)[rank], grad_y.tensor_split(world_size)[rank]
    ways = partial(by_hand, GELU), partial(by_hand, FusedGELU), with_autograd
    contenders = [make(gate, experts, *mine) for make in ways]
    results = [[*step(), *gradients()] for step, gradients in contenders]
    for every in zip(*results, strict=True):
        for ours in every[:-1]:
            torch.testing.assert_close(ours, every[-1], rtol=1e-4, atol=1e-4)
    return take_turns({i: step for i, (step, _) in enumerate(contenders)}, repetitions)


def ratios(shape, repetitions):
    """Of each repetition, both ways by hand over autograd, the slower rank's; autograd's median."""
    rows, features, hidden = shape
    gate, experts = random_experts(NUM_EXPERTS, features, hidden)
    x, grad_y = torch.randn(2, WORLD_SIZE * rows, features)
    run = launch(race, WORLD_SIZE, (gate, experts, x, grad_y, repetitions), deadline=300)
    *ours, theirs = run.results[0].values()
    found = [[a / b for a, b in zip(one.seconds, theirs.seconds, strict=True)] for one in ours]
    return found, theirs.median


def two_levels(repetitions):
    """Flat over two levels, of each repetition: seconds, and bytes that leave the first host."""
    chosen, network = lab.popular(512, 32, 8, skew=0.0), VirtualNetwork(2, 4, 10e6)
    found = []
    for _ in range(repetitions):
        flat, tiered = (lab.cross(how, chosen, 32, 256, network) for how in (False, True))
        crossed = [run.traffic.hosts[0].sent for run, _ in (flat, tiered)]
        found.append((flat[1] / tiered[1], crossed[0] / crossed[1]))
    return list(zip(*found, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    print(f"a mixture's step by hand over autograd's, {WORLD_SIZE} ranks, median of ", end="")
    print(repetitions)
    columns = f"{'by hand (quartiles)':>22}{'and torch`s GELU':>22}{'autograd':>12}"
    print(f"{'rows':8}{'T × D × hidden':>20}{columns}  aim ≤ 1.00")
    for name, shape in SHAPES.items():
        found, rival = ratios(shape, repetitions)
        numbers = ""
        for one in found:
            least, middle, most = statistics.quantiles(one, n=4)
            numbers += f"{f'{middle:.2f} ({least:.2f} to {most:.2f})':>22}"
        print(f"{name:8}{' × '.join(map(str, shape)):>20}{numbers}{1e3 * rival:9.1f} ms")
    if why_no_network() is not None:
        print(why_no_network())
        return
    for what, found in zip(("seconds", "bytes"), two_levels(5), strict=True):
        spread = f"{min(found):.2f} to {max(found):.2f}"
        print(f"flat over two levels, {what}: median {statistics.median(found):.2f} ({spread})")


if __name__ == "__main__":
    main()
