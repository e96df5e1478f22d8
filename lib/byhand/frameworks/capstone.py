"""Exercise 18: what a layout costs. Pure.

It stands apart from what measures, for a rank that locks it loads it.
"""

from __future__ import annotations

from byhand.costs import Layout, Machine, Model, held, seconds
from byhand.costs.counting import State


def price(
    model: Model, layout: Layout, machine: Machine, num_sequences: int, state: State
) -> tuple[float, float]:
    """Of one layout: the predicted seconds of a step, and the bytes of its fullest rank.

    Raises:
        ValueError: the layout cannot share out the sequences, or the halves of blocks.
    """
    layout.num_micro_batches(num_sequences)
    stages = (held(model, layout, num_sequences, at, state=state) for at in range(layout.pp))
    most = max(sum(kinds.values()) for kinds in stages)
    return sum(seconds(model, layout, machine, num_sequences, state).values()), most
