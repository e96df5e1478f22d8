"""Exercise 18: a student's own step on slow links, beside the model's time.

No mark depends on the clock: a grader's ranks live behind walls, where no virtual network can be
laid, and a busy machine takes longer for the same step.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.distributed as dist
from matplotlib.figure import Figure

from byhand.costs import Layout, Machine, Model, seconds
from byhand.costs.counting import State
from byhand.figures.bars import layout_seconds
from byhand.model.gpt import GPT
from byhand.runtime import VirtualNetwork, launch, why_no_network

PARTS = "computing", "tp", "idle", "sums"  # of costs.seconds, in the order of the figure's
Batches = Sequence[tuple[torch.Tensor, torch.Tensor]]
MakeStep = Callable[[GPT, Layout, int], Callable]


def beside_the_clock(
    make_step: MakeStep,
    weights: GPT,
    batches: Batches,
    layout: Layout,
    model: Model,
    machine: Machine,
    state: State,
) -> Figure:
    """The step of `make_step`, modelled and measured, on the machine's links and without a limit.

    Where no virtual network can be laid, a sentence says so, and the slow links are left out.
    """
    reason = why_no_network()
    found: dict[str, tuple[list[float], float]] = {}
    for name, rate in (("slow links", machine.between), ("no limit", math.inf)):
        if rate < math.inf and reason:
            print(f"Not measured on slow links: {reason}")
            continue
        on = replace(machine, between=rate)
        parts = seconds(model, layout, on, len(batches[0][0]), state)
        took = measured(make_step, weights, batches, layout, machine.ranks_per_host, rate)
        found[name] = [parts[part] for part in PARTS], min(took)
        others = ", ".join(f"{each:.2f}" for each in sorted(took)[1:])
        print(f"{name}: modelled {sum(parts.values()):.2f} s, measured {min(took):.2f} ({others})")
    print(f"{layout.num_ranks} ranks shared {os.cpu_count()} cores.")
    name, (shares, clock) = next(iter(found.items()))
    title = f"With {name} a step took {clock:.2f} s, {clock / sum(shares):.2g} times the model's"
    return layout_seconds(found, title)


def measured(
    make_step: MakeStep,
    weights: GPT,
    batches: Batches,
    layout: Layout,
    ranks_per_host: int,
    rate: float,
) -> list[float]:
    """Seconds of each step but the first, of its slowest rank; hosts' links have that rate."""
    hosts = layout.num_ranks // ranks_per_host
    network = VirtualNetwork(hosts, ranks_per_host, rate) if rate < math.inf else None
    args = make_step, weights, layout, batches
    run = launch(_timed, layout.num_ranks, args, network=network, deadline=180.0)
    return [max(step) for step in list(zip(*run.results, strict=True))[1:]]


def _timed(
    rank: int,
    world_size: int,
    make_step: MakeStep,
    weights: GPT,
    layout: Layout,
    batches: Batches,
) -> list[float]:
    """On a rank: the seconds of each step."""
    step, took = make_step(weights, layout, len(batches[0][0])), []
    for tokens, following in batches:
        dist.barrier()
        began = time.perf_counter()
        step(tokens.clone(), following.clone())
        took.append(time.perf_counter() - began)
    return took
