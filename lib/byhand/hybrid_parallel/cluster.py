"""Which layout of a cluster trains a published GPT fastest: every one, by byhand.costs. Pure.

`fastest` tries every layout and micro-batch that fits, by the formula of byhand.costs.timing;
`simulated` runs the schedule's actions one by one, and is what the formula is held against.

Blocks are recomputed in backward, as in Narayanan et al. 2021 (arXiv:2104.04473). The state is 18
bytes a parameter (two of weights, four each of gradients, weights and Adam's two averages); a tenth
of the memory is left to all else. Left out: ZeRO, interleaving, sequence parallelism.
"""

from __future__ import annotations

from dataclasses import replace

from byhand.costs.counting import held
from byhand.costs.layout import Layout, layouts
from byhand.costs.machine import Machine
from byhand.costs.model import Model
from byhand.costs.timing import Step, estimate

STATE = {"weights": 2, "gradients": 4, "optimizer": 12}  # bytes a parameter
ROWS = 1, 2, 4, 8, 16  # of a micro-batch, to choose from
USABLE = 0.9  # of a GPU's memory: contexts, buffers and gaps take the rest
Found = dict[Layout, dict[str, float]]  # seconds by part


def bytes_held(model: Model, layout: Layout, num_sequences: int) -> float:
    """Of the fullest rank: the first stage's, which holds most micro-batches, or the last's."""
    ends = {0, layout.pp - 1}
    return max(
        sum(held(model, layout, num_sequences, stage, state=STATE).values()) for stage in ends
    )


def fits(model: Model, layout: Layout, machine: Machine, num_sequences: int) -> bool:
    """Whether everything divides, and the fullest rank has room."""
    num_halves = sum(part.half for part in model.parts)
    whole = num_sequences % (layout.dp * layout.rows) == 0 and model.num_heads % layout.tp == 0
    if not whole or num_halves % layout.pp:
        return False
    return bytes_held(model, layout, num_sequences) <= USABLE * machine.memory


def layouts_that_fit(
    model: Model, machine: Machine, num_ranks: int, num_sequences: int
) -> list[Layout]:
    """Every layout and micro-batch that fits, with blocks recomputed."""
    every = (
        replace(layout, rows=rows, recompute="full")
        for layout in layouts(num_ranks)
        for rows in ROWS
    )
    return [layout for layout in every if fits(model, layout, machine, num_sequences)]


def fastest(model: Model, machine: Machine, num_ranks: int, num_sequences: int) -> Found:
    """What fits, with a step's seconds by part; the fastest first.

    Raises:
        ValueError: nothing fits.
    """
    given = model, machine, num_ranks, num_sequences
    fit = layouts_that_fit(*given)
    found = {at: estimate(model, at, machine, num_sequences, STATE) for at in fit}
    if not found:
        raise ValueError(
            f"{num_ranks} ranks of {machine.memory / 1e9:.0f} GB cannot hold this model and train "
            f"it on {num_sequences} sequences a step"
        )
    return dict(sorted(found.items(), key=lambda item: sum(item[1].values())))


def degrees(layout: Layout) -> Layout:
    """Its dp, tp and pp alone."""
    return Layout(layout.dp, layout.tp, layout.pp)


def by_degrees(found: Found) -> Found:
    """Of what `fastest` found, for each dp x tp x pp the best micro-batch."""
    best = {}
    for layout, parts in found.items():
        best.setdefault(degrees(layout), (layout, parts))
    return dict(best.values())


def simulated(model: Model, layout: Layout, machine: Machine, num_sequences: int) -> float:
    """Seconds of the same step, action by action; a message waits for those before it."""
    step = Step(model, layout, machine, num_sequences, STATE)
    return sum(step.simulated()) + step.tied + step.optimizer
