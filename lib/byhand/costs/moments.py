"""The most bytes that a rank holds at one moment of a step under FSDP2. Pure.

    moments(model, layout, num_sequences, stage)    {moment: bytes} of one rank of that stage
    peak(model, layout, num_sequences)              the most, of any stage and moment

`held` counts what lies from forward to backward. A measured peak has more in it:

    gathered    weights that are whole, in two bytes: two blocks (one computes, the next one comes)
                and the ends, which FSDP2's root keeps. In a pipeline the whole stage stays, and so
                does the sum over micro-batches of its gradients, in four
    the loss    copies of the logits: LOGIT has the bytes of each
    a block     backward's gradients of one block, in two bytes and, as they are sent, in four
    sequence    x of the layers split by column, gathered and kept: of the block at work, the head
    a pipeline  y of each micro-batch in flight, kept until its gradient has come

At its `loss` a rank holds what all blocks saved, and copies of the logits; at its first `block` in
backward these are gone. Left out: what the allocator cannot use of what it reserves, but for LOGIT;
what 8-bit numbers save; bytes of the libraries.
Sources: pytorch/torchtitan at 9dec370 (parallelize_llama.py, train.py), torch 2.9 (fully_shard,
pipelining's stage.py, tensor.parallel's loss.py).
"""

from __future__ import annotations

from dataclasses import replace

from byhand.costs.counting import (
    State,
    activations,
    chunks,
    held_state,
    in_flight,
    parameters,
    saved,
)
from byhand.costs.layout import Layout
from byhand.costs.model import Model

FLOAT32: State = {"weights": 4, "gradients": 4, "optimizer": 8}  # bytes a parameter: AdamW's
BLOCKS_AT_ONCE = 2

# Bytes a logit, at the loss's peak. Eager, in backward: three float32 tensors of all logits; over
# tp, four. Beside them the two bytes of the logits, which are free already, and reserved: no tensor
# of four bytes a logit fits in. Compiled, or fused: the logits and their gradient.
LOGIT = {"eager": 3 * 4 + 2, "parallel": 4 * 4 + 2, "compiled": 2 + 2}


def moments(
    model: Model, layout: Layout, num_sequences: int, stage: int = 0, *, logit: float = 14
) -> dict[str, float]:
    """Bytes of one rank of that stage at its loss, and at its first block in backward.

    logit: bytes of each at the loss, such as one of LOGIT.

    Raises:
        ValueError: sequences or half blocks that the layout cannot share out; no such stage.
    """
    here = [part for chunk in chunks(model, layout, stage) for part in chunk]
    halves = [part for part in model.parts if part.half][:2]
    t, features = layout.tp, model.num_features
    tokens = layout.rows * model.num_positions / layout.cp

    message = tokens * features * model.itemsize
    gathered = message * (1 - 1 / t) if layout.sequence else 0.0  # beside this rank's own tokens
    logits = sum(tokens * part.split / features / t for part in here if part.name == "head")
    whole = replace(layout, recompute="none")
    block = tokens * sum(saved(part, whole) for part in halves)
    kept = activations(_without_logits(model), layout, num_sequences, stage)
    if layout.recompute == "full":
        kept -= block  # it is there later

    block_size = sum(part.parameters for part in halves) / t
    size = sum(parameters(model, layout, stage))
    ends = size - sum(part.parameters for part in here if part.half) / t
    always = sum(held_state(model, layout, stage, FLOAT32).values()) + kept
    gradients = 4 * block_size  # as they are sent
    if layout.pp > 1:
        number = in_flight(layout, layout.num_micro_batches(num_sequences), stage)
        always += (2 + 4) * size + number * message / (t if layout.sequence else 1)
    elif layout.zero == 3:
        always += 2 * (ends + BLOCKS_AT_ONCE * block_size)
        gradients += 2 * (block_size + ends)
    again = block + 2 * gathered if layout.recompute == "full" else 0.0
    return {
        "loss": always + logits * logit + (gathered if logits else 0.0),
        "block": always + again + gradients,
    }


def _without_logits(model: Model) -> Model:
    """The model, but of its head's logits nothing is saved."""
    parts = (replace(p, saved=(0, p.saved[1])) if p.name == "head" else p for p in model.parts)
    return replace(model, parts=tuple(parts))


def peak(model: Model, layout: Layout, num_sequences: int, *, logit: float = 14) -> float:
    """The most bytes of a rank, of any stage, at either moment; raises what `moments` raises."""
    return max(
        max(moments(model, layout, num_sequences, stage, logit=logit).values())
        for stage in range(layout.pp)
    )
