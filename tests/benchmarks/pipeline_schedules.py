"""Every pipeline schedule: idle on paper and on real ranks; what a barrier costs; the search.

    python tests/benchmarks/pipeline_schedules.py [repetitions]

1. Idle fraction measured over predicted, four stages that sleep, all schedules taking turns: the
   first repetition of each, then the second, so that a busy minute falls on all.
2. A step among four with an all-reduce after each and without, in forwards, beside prediction.
3. A slow link: 1F1B, ZB-H1, and what is found with two more micro-batches in flight.
4. What `find` finds beside the schedules in print, and the processor's seconds it takes.
"""

from __future__ import annotations

import argparse
import statistics
import time

from byhand import VirtualNetwork
from byhand.pipeline_parallel.lab import sleep_through
from byhand.pipeline_schedules import find, loop, simulate, there_and_back
from byhand.pipeline_schedules.lab import NAMED, bill, chunks_per_stage
from byhand.pipeline_schedules.orders import (
    one_forward_one_backward,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from byhand.runtime import why_no_network

P, M, REPETITIONS, SECONDS, STEPS, RATE = 4, 8, 5, 0.05, 4, 25e6


def taking_turns(cases, repetitions):
    """By name, what each case gave in each repetition, the least first."""
    found = {name: [] for name in cases}
    for _ in range(repetitions):
        for name, case in cases.items():
            found[name].append(case())
    return {name: sorted(values) for name, values in found.items()}


def print_idle(repetitions):
    schedules = {name: make(P, M) for name, make in NAMED.items()}
    seconds = {name: [SECONDS / chunks_per_stage(s)] * 3 for name, s in schedules.items()}
    cases = {
        name: lambda name=name: sleep_through(schedules[name], *seconds[name]).idle_fraction
        for name in NAMED
    }
    found = taking_turns(cases, repetitions)
    print(f"idle fraction, {P} stages that sleep {SECONDS} s, {M} micro-batches, of {repetitions}")
    print(f"{'schedule':20}{'paper':>8}{'median':>8}{'least':>8}{'most':>8}{'ratio':>7}", end="")
    print(f"{'no barrier':>12}{'held':>6}{'messages':>10}")
    for name, values in found.items():
        row, median = bill(schedules[name]), statistics.median(values)
        print(f"{name:20}{row.idle:8.3f}{median:8.3f}{values[0]:8.3f}{values[-1]:8.3f}", end="")
        print(f"{median / row.idle:7.2f}{row.idle_without_barrier:12.3f}", end="")
        print(f"{row.held:6.1f}{row.messages:10}", flush=True)


def print_barrier(repetitions):
    makes = {"ZB-H1": zero_bubble_h1, "ZB-H2": zero_bubble_h2}
    ways = {
        (name, barrier): make(P, M) for name, make in makes.items() for barrier in (True, False)
    }

    def step(way):
        options = {"num_steps": STEPS, "barrier": way[1]}
        return sleep_through(ways[way], *[SECONDS] * 3, **options).seconds / STEPS / SECONDS

    found = taking_turns({way: lambda way=way: step(way) for way in ways}, repetitions)
    print(f"\none of {STEPS} steps, in forwards: paper, median (least to most)")
    for (name, barrier), values in found.items():
        paper = simulate(ways[name, barrier])
        each = paper.seconds if barrier else paper.period
        mean = (paper.seconds + (STEPS - 1) * each) / STEPS
        row = f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})"
        print(
            f"{name}, {'with' if barrier else 'without'} a barrier: {mean:.2f}, {row}", flush=True
        )


def print_messages(repetitions):
    if why_no_network() is not None:
        print(f"\nno slow link: {why_no_network()}")
        return
    network, size = VirtualNetwork(P, 1, RATE), int(RATE * SECONDS / 2)
    ways = {
        "1F1B": one_forward_one_backward(P, M),
        "ZB-H1": zero_bubble_h1(P, M),
        "found, 2 more in flight": find(loop(P), M, P + 2, send=0.5),
    }
    cases = {
        name: lambda name=name: sleep_through(ways[name], *[SECONDS] * 3, size, network).seconds
        for name in ways
    }
    print("\na message takes half a forward; a step in forwards: paper, median (least to most)")
    for name, values in taking_turns(cases, repetitions).items():
        paper, values = simulate(ways[name], send=0.5).seconds, [v / SECONDS for v in values]
        row = f"{statistics.median(values):.1f} ({values[0]:.1f} to {values[-1]:.1f})"
        print(f"{name:24}{paper:6.1f}  {row}", flush=True)


def print_search():
    print("\nfound beside in print: forwards of a stage, and the processor's seconds of the search")
    costs = {"F = I = W": (1, 1, 1), "1, 1.2, 0.8": (1, 1.2, 0.8)}
    for p, m in ((4, 8), (8, 16)):
        for name, route, most, make in (
            ("ZB-H1", loop(p), p, zero_bubble_h1),
            ("ZB-H2", loop(p), 2 * p - 1, zero_bubble_h2),
            ("ZB-V", there_and_back(p), 2 * p, zero_bubble_v),
        ):
            for title, cost in costs.items():
                each = [part * p / len(route) for part in cost]
                start = time.process_time()
                found = simulate(find(route, m, most, *each), *each)
                took, known = time.process_time() - start, simulate(make(p, m), *each)
                print(f"p {p}, m {m:2} {name:6} {title:12} {known.seconds:6.2f} in print", end="")
                print(f"{found.seconds:8.2f} found {took:7.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    print_idle(repetitions)
    print_barrier(min(3, repetitions))
    print_messages(min(3, repetitions))
    print_search()


if __name__ == "__main__":
    main()
