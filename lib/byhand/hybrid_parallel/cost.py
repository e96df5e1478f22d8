"""What a hybrid step sends and how long it takes. Pure.

All ranks together send, in one step on B sequences (d = dp, t = tp, p = pp, n ranks in all):

    tp         2(t-1) · (4 L · activations + d · L · gain + tokens)
    pp         2(p-1) · t · activations
    dp         2(d-1) · (sharded + t · replicated)
    embedding  2 · t · d · table                                              where p > 1
    scalars    (2(t·p-1) · d + 2(n-1)) · 8                                    norm, and loss

in bytes. `activations`: those of the batch at one boundary, B·S·D numbers; `tokens`: those of x,
B·S of 8 bytes, broadcast as the targets are; `gain`: the partial gradients of one block;
`sharded` and `replicated`: the parameters of one replica, by placement, the table counted on both
ends of a pipeline. L blocks, each with two all-reduces forward and two backward.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from byhand.costs.counting import parameters, sent
from byhand.costs.layout import Layout
from byhand.costs.machine import Machine
from byhand.costs.model import Model
from byhand.pipeline_schedules.actions import Actions
from byhand.pipeline_schedules.simulation import Timeline, simulate

SCALARS = "norm and loss"


def sent_bytes(model: Model, layout: Layout, num_sequences: int) -> dict[str, float]:
    """What all ranks together send in one step on a global batch, by group: the table above.

    What byhand.costs counts of one rank, for all; beside it the tokens, which it leaves out, and
    the numbers of norm and loss.

    Raises:
        ValueError: there are more stages than halves of blocks.
    """
    dp, tp, pp = layout.dp, layout.tp, layout.pp
    names = {"tp": "tp", "pp": "pp", "dp": "dp-cp", "embedding": "embedding"}
    found = dict.fromkeys(names, 0.0)
    for stage in range(pp):
        groups = sent(model, layout, num_sequences, stage)
        for name, group in names.items():
            found[name] += dp * tp * sum(groups.get(group, {}).values())
    found["tp"] += 2 * (tp - 1) * num_sequences * model.num_positions * 8
    return found | {SCALARS: 8 * (2 * (tp * pp - 1) * dp + 2 * (dp * tp * pp - 1))}


def held_bytes(model: Model, layout: Layout) -> float:
    """The parameters that the tp · pp ranks of one replica hold together."""
    stages = (sum(parameters(model, layout, stage)) for stage in range(layout.pp))
    return layout.tp * model.itemsize * sum(stages)


@dataclass(frozen=True)
class Prediction:
    """The seconds of one step and its parts: pipeline (all-reduces over tp in it), sums, software.

    `computing`: the seconds in which a rank computes, of one step.
    """

    pipeline: Timeline
    all_reduces: float  # over tp, of one rank and step: within the pipeline's time
    sums: float  # of gradients, over dp and embedding
    computing: float
    software: float = 0.0

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return self.pipeline.seconds + self.sums + self.software

    @property
    def parts(self) -> tuple[float, float, float, float, float]:
        """Seconds: a rank computes, all-reduces over tp, idles, sums gradients; software."""
        idle = self.pipeline.seconds - self.computing - self.all_reduces
        return self.computing, self.all_reduces, max(0.0, idle), self.sums, self.software

    @property
    def idle_fraction(self) -> float:
        """The share of the step in which a rank idles in the pipeline, as `parts` has it."""
        return self.parts[2] / self.seconds


def predict(
    model: Model,
    layout: Layout,
    machine: Machine,
    schedule: Actions,
    num_sequences: int,
    seconds: float,
    software: float = 0.0,
) -> Prediction:
    """One step whose stages have equal shares of the blocks.

    seconds: of half a block (an attention, or an MLP) for one sequence on one rank; its backward
    takes twice as long. software: of a whole step whose blocks take no time, measured. It is added
    at the end, as if nothing of it went on while other ranks compute.
    """
    groups, tp, pp = layout.grid.groups, layout.tp, layout.pp
    m = 1 + max(action.micro_batch for action in schedule[0])
    halves = sum(part.half for part in model.parts) / pp  # of blocks, on one stage
    rows = num_sequences / layout.dp / m
    message = rows * model.num_positions * model.num_features * model.itemsize
    compute = halves * seconds * rows / tp
    reduce = halves * machine.all_reduce(groups("tp"), message)

    @functools.cache
    def send(sender: int, receiver: int) -> float:
        return machine.send(groups("pp"), message, sender, receiver)

    forward, backward = compute + reduce, 2 * compute + reduce
    timeline = simulate(schedule, forward, backward, backward_weight=0, send=send)
    sums = machine.all_reduce(groups("dp"), held_bytes(model, layout) / (tp * pp))
    for table in (part for part in model.parts if part.tied and pp > 1):
        sums += machine.all_reduce(groups("embedding"), table.parameters * model.itemsize)
    return Prediction(timeline, 2 * m * reduce, sums, 3 * m * compute, software)
