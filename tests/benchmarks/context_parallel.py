"""Ring attention by hand over torch's own ring, and what zigzag shares gain; same ranks, in turns.

    python tests/benchmarks/context_parallel.py [repetitions]

One step is a causal forward and backward on 2 ranks of one thread each. In one launch the two take
turns, with a barrier before each; a repetition's ratio is the time of the slower rank with the one
over the slower rank's with the other. Torch's ring is the private one beneath its context_parallel,
which itself fails on a CPU; its blocks are torch's fused kernel, and so are those of "ours"; by
hand they are plain products, which one can read.
"""

from __future__ import annotations

import argparse
import statistics

import torch
import torch.distributed as dist

from byhand import launch
from byhand.communication_cost.timing import take_turns
from byhand.context_parallel import ring_attention, ring_attention_backward, share
from byhand.context_parallel.blocks import BY_HAND
from byhand.context_parallel.fused import FUSED

WORLD_SIZE, REPETITIONS = 2, 15
SHAPES = {"short": (8, 256, 32), "medium": (8, 1024, 32), "long": (8, 4096, 32)}


def by_hand(inputs, layout, kernel=BY_HAND):
    """One step of byhand's ring."""
    q, k, v, grad_y = (share(tensor, 2, layout=layout) for tensor in inputs)

    def step():
        y, saved = ring_attention(q, k, v, layout=layout, kernel=kernel)
        return y, *ring_attention_backward(grad_y, saved)

    return step


def by_torch(inputs):
    """One step of torch's ring, over zigzag shares."""
    from torch import ops
    from torch.distributed.tensor.experimental._context_parallel import _attention as theirs

    theirs._cp_options.enable_load_balance = True
    theirs._cp_options.convert_to_f32 = False
    q, k, v, grad_y = (share(tensor, 2) for tensor in inputs)
    forward = ops.aten._scaled_dot_product_flash_attention_for_cpu
    backward = ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    how, group = {"is_causal": True, "dropout_p": 0.0}, dist.group.WORLD

    def step():
        y, lse, *_ = theirs._templated_ring_attention(group, 2, forward, q, k, v, **how)
        ends = grad_y, "grad_out", q, k, v, y, lse
        grads = theirs._templated_ring_attention_backward(group, 2, backward, *ends, **how)
        return y, *grads[:3]

    return step


def race(rank, world_size, inputs, repetitions):
    """The times of all, after checking that ours and torch's compute the same."""
    steps = {"ours": by_hand(inputs, "zigzag", FUSED), "torch": by_torch(inputs)}
    steps["by hand"] = by_hand(inputs, "zigzag")
    for mine, theirs in zip(steps["ours"](), steps["torch"](), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
    steps["contiguous"] = by_hand(inputs, "contiguous", FUSED)
    return take_turns(steps, repetitions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    print(f"ring attention's step, {WORLD_SIZE} ranks: medians of {repetitions} (least to most)")
    heads = "ours over torch", "by hand over torch", "contiguous over zigzag"
    print(f"{'':8}{'H × S × d':>14}", *(f"{head:>22}" for head in heads), f"{'torch':>12}")
    for name, (num_heads, length, size) in SHAPES.items():
        inputs = tuple(torch.randn(4, 1, num_heads, length, size))
        found = launch(race, WORLD_SIZE, (inputs, repetitions), deadline=300).results[0]
        told = []
        for above, below in (("ours", "torch"), ("by hand", "torch"), ("contiguous", "ours")):
            both = zip(found[above].seconds, found[below].seconds, strict=True)
            ratios = [a / b for a, b in both]
            told.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        shape = f"{num_heads} × {length} × {size}"
        seconds = f"{1e3 * found['torch'].median:9.1f} ms"
        print(f"{name:8}{shape:>14}", *(f"{each:>22}" for each in told), seconds)


if __name__ == "__main__":
    main()
