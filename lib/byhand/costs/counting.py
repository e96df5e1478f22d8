"""What one rank holds for a training step, and what it sends in it. Pure.

    held(model, layout, num_sequences, stage)    {kind: bytes}           beside run.peak_bytes
    sent(model, layout, num_sequences, stage)    {group: {op: bytes}}    beside ledger.sent_bytes

Both are of *one* rank of that stage, by the names that byhand.rank_groups and the ledger use. What
a rank sends is what an algorithm must move: byhand.communication_cost's bus factors. All ranks of
a stage are alike: experts are thought to be visited equally, and what is left over when ranks do
not divide is spread.

Left out: what is whole for a moment (a layer that ZeRO gathers, a bucket), norms and losses (a few
bytes), the tokens that a broadcast brings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from byhand.communication_cost.model import bus_factor
from byhand.costs.layout import Layout
from byhand.costs.model import Model, Part
from byhand.pipeline_schedules.actions import Action, Actions
from byhand.words import counted

State = Mapping[str, float]
MIXED: State = {"weights": 2, "gradients": 2, "optimizer": 12}  # bytes a parameter; ZeRO's paper
SHARDED_FROM = {"optimizer": 1, "gradients": 2, "weights": 3}  # the stage of ZeRO that shards it


def chunks(model: Model, layout: Layout, stage: int) -> list[tuple[Part, ...]]:
    """The parts of each chunk on that stage: equal shares of half blocks, the ends at the ends.

    Where they do not divide, the first chunks have one more. With light ends the table and the head
    are shared out with them, as two halves each.

    Raises:
        ValueError: more chunks than half blocks, or no such stage.
    """
    halves = [number for number, part in enumerate(model.parts) if part.half]
    total = layout.pp * layout.chunks
    if total > 1 and len(halves) < total:
        raise ValueError(f"{len(halves)} halves of blocks cannot make {counted(total, 'chunk')}")
    if not 0 <= stage < layout.pp:
        raise ValueError(f"there is no stage {stage}: they are numbered 0 to {layout.pp - 1}")
    end = 2 if layout.light_ends else 0
    each, more = divmod(len(halves) + 2 * end, total)
    starts = [max(0, chunk * each + min(chunk, more) - end) for chunk in range(total)]
    places = [*halves, *[halves[-1] + 1] * end] if halves else []  # behind the last: the head
    edges = [0, *(places[start] for start in starts[1:]), len(model.parts)]
    return [model.parts[edges[c] : edges[c + 1]] for c in range(stage, total, layout.pp)]


def owned(model: Model, layout: Layout, stage: int) -> list[Part]:
    """The parts of that stage; a tied one only where it is a copy."""
    here = [part for chunk in chunks(model, layout, stage) for part in chunk]
    return [part for part in here if not part.tied or model.parts[0] not in here]


def parameters(model: Model, layout: Layout, stage: int = 0) -> tuple[float, float]:
    """Parameters of one rank: (of layers that all its replicas have, of experts)."""
    here, t = owned(model, layout, stage), layout.tp
    dense = sum(part.split / t + part.whole + part.by_token + part.partial for part in here)
    return dense, sum(part.experts for part in here) / t / layout.ep


def held(
    model: Model,
    layout: Layout,
    num_sequences: int,
    stage: int = 0,
    *,
    state: State = MIXED,
    schedule: Actions | None = None,
) -> dict[str, float]:
    """Bytes that one rank of that stage holds: its state's kinds, and "activations".

    state: bytes a parameter of weights, gradients and optimizer. schedule: of the pipeline;
    1F1B, interleaved where there are chunks, when None.

    Raises:
        ValueError: sequences or half blocks that the layout cannot share out; no such stage.

    >>> model = gpt(12, 768, 12, num_tokens=50304, num_positions=1024)
    >>> for zero in (0, 3):
    ...     of = held(model, Layout(dp=8, zero=zero), num_sequences=8)
    ...     print({kind: f"{num_bytes / 1e9:.2f} GB" for kind, num_bytes in of.items()})
    {'weights': '0.25 GB', 'gradients': '0.25 GB', 'optimizer': '1.49 GB', 'activations': '0.63 GB'}
    {'weights': '0.03 GB', 'gradients': '0.03 GB', 'optimizer': '0.19 GB', 'activations': '0.63 GB'}
    """
    found = held_state(model, layout, stage, state)
    return found | {"activations": activations(model, layout, num_sequences, stage, schedule)}


def held_state(
    model: Model, layout: Layout, stage: int = 0, state: State = MIXED
) -> dict[str, float]:
    """Of `held` what does not depend on the batch."""
    dense, experts = parameters(model, layout, stage)
    found = {}
    for kind, each in state.items():
        shards = layout.zero >= SHARDED_FROM[kind]
        copies = (layout.dp * layout.cp, layout.expert_dp) if shards else (1, 1)
        found[kind] = dense * each / copies[0] + experts * each / copies[1]
    return found


def activations(
    model: Model,
    layout: Layout,
    num_sequences: int,
    stage: int = 0,
    schedule: Actions | None = None,
) -> float:
    """Bytes saved for backward on one rank of that stage, when it holds most."""
    here, tokens = chunks(model, layout, stage), layout.rows * model.num_positions / layout.cp
    again = layout.recompute == "full"  # of a block its input alone is kept: half of it a half
    entry = model.num_features * model.itemsize / (layout.tp if layout.sequence else 1)

    def bytes_of(parts: Sequence[Part], each: Callable[[Part, Layout], float]) -> float:
        return tokens * sum(entry / 2 if again and p.half else each(p, layout) for p in parts)

    first = [bytes_of(parts, saved) for parts in here]
    if schedule is not None:
        most = _most_held(schedule[stage], first, [bytes_of(parts, kept) for parts in here])
    else:
        m = layout.num_micro_batches(num_sequences)
        most = in_flight(layout, m, stage) * sum(first) / layout.chunks
    if not again:
        return most
    at_work = replace(layout, recompute="none")
    halves = [saved(part, at_work) for part in model.parts if part.half]
    return most + tokens * max(map(sum, zip(halves[::2], halves[1::2], strict=True)))


def saved(part: Part, layout: Layout) -> float:
    """Bytes a token that one rank saves of a part."""
    split, whole = part.saved
    outside = layout.tp if layout.sequence else 1
    if layout.recompute == "none":
        split += part.scores if layout.cp == 1 else part.ring
    return split / layout.tp + whole / outside


def kept(part: Part, layout: Layout) -> float:
    """Bytes a token between the two halves of a part's backward."""
    if part.kept is None:
        return saved(part, layout)
    return part.kept[0] / layout.tp + part.kept[1] / (layout.tp if layout.sequence else 1)


def in_flight(layout: Layout, num_micro_batches: int, stage: int) -> int:
    """The most chunks, of any micro-batch, that 1F1B has forwarded and not yet wholly backwarded.

    Source for interleaved: Megatron-LM, schedules.py (warm-up micro-batches).
    """
    p, v, m = layout.pp, layout.chunks, num_micro_batches
    if v == 1:
        return min(p - stage, m)
    return min(2 * (p - stage - 1) + (v - 1) * p + 1, m * v)


def _most_held(actions: Sequence[Action], first: Sequence[float], later: Sequence[float]) -> float:
    """The most bytes along one stage's actions: first[c] from chunk c's forward on, later[c]
    between the halves of its backward."""
    change = {
        "forward": first,
        "backward": [-size for size in first],
        "backward_input": [after - size for size, after in zip(first, later, strict=True)],
        "backward_weight": [-size for size in later],
    }
    return max(itertools.accumulate(change[action.kind][action.chunk] for action in actions))


def sent(
    model: Model, layout: Layout, num_sequences: int, stage: int = 0
) -> dict[str, dict[str, float]]:
    """Bytes that one rank of that stage sends in a step, by group and op.

    tp     where layers are entered and left; partial gradients
    cp     keys and values round the ring; backward sends them again, and their gradients
    ep     rows to their experts and back, forward and backward
    pp     activations to the next stage, and their gradients to the one before
    dp-cp, expert-dp    gradients, or what ZeRO makes of them
    embedding           the table's gradient, where the head is another stage's
    Groups of one rank are left out. Blocks that are recomputed in full send in their second forward
    what they sent in the first.

    >>> model = gpt(12, 768, 12, num_tokens=50304, num_positions=1024)
    >>> sent(model, Layout(dp=8), num_sequences=8)
    {'dp-cp': {'all_reduce': 435665664.0}}
    >>> sent(model, Layout(dp=8, zero=3), num_sequences=8)
    {'dp-cp': {'reduce_scatter': 217832832.0, 'all_gather': 435665664.0}}
    """
    here, m = chunks(model, layout, stage), layout.num_micro_batches(num_sequences)
    parts, b = [part for chunk in here for part in chunk], model.itemsize
    tokens = layout.rows * model.num_positions / layout.cp
    message = tokens * model.num_features * b
    again = [part for part in parts if part.half] if layout.recompute == "full" else []
    keys = _keys([*parts * 3, *again], layout, tokens)
    routed = sum(part.routed for part in [*parts * 4, *again * 2])
    asked: dict[str, tuple[int, dict[str, float]]] = {
        "tp": (layout.tp, _tensor_parallel(parts, again, layout, m, tokens, model)),
        "cp": (layout.cp, {"send": m * keys * b}),
        "ep": (layout.ep, {"all_to_all": m * message * routed}),
    }
    dense, experts = (count * b for count in parameters(model, layout, stage))
    asked["dp-cp"] = (layout.dp * layout.cp, gradients(layout.zero, m, dense))
    asked["expert-dp"] = (layout.expert_dp, gradients(layout.zero, m, experts))
    if stage in (0, layout.pp - 1) and layout.pp > 1 and any(part.tied for part in model.parts):
        table = next(part for part in model.parts if part.tied)
        asked["embedding"] = (2, {"all_reduce": (table.split / layout.tp + table.whole) * b})
    found = {
        group: {op: bus_factor(op, n) * size for op, size in ops.items() if size}
        for group, (n, ops) in asked.items()
        if n > 1
    }
    if layout.pp > 1:
        # Every chunk sends forward but the model's last, and backward but its first.
        messages = 2 * layout.chunks - (stage == 0) - (stage == layout.pp - 1)
        between = message / layout.tp if layout.sequence else message
        found["pp"] = {"send": m * messages * between}
    return {group: ops for group, ops in found.items() if ops}


def crossings(part: Part, sequence: bool) -> dict[str, dict[str, float]]:
    """{"forward": {op: how many of [T, D]}, "backward": ...}: what a part does over tp.

    Between ranks that share tokens, an all-reduce is cut in two; what was entered is not saved
    whole but gathered again.
    """
    enters, leaves = part.enters, part.leaves
    if not sequence:
        return {"forward": {"all_reduce": leaves}, "backward": {"all_reduce": enters}}
    return {
        "forward": {"all_gather": enters, "reduce_scatter": leaves},
        "backward": {"all_gather": leaves + enters, "reduce_scatter": enters},
    }


def _tensor_parallel(
    parts: Sequence[Part],
    again: Sequence[Part],
    layout: Layout,
    m: int,
    tokens: float,
    model: Model,
) -> dict[str, float]:
    """Bytes that cross tp in a step of m micro-batches, before the bus factor.

    again: those of the parts whose forward runs a second time.
    """
    partial = sum(part.partial + layout.sequence * part.by_token for part in parts)
    numbers = partial + m * tokens * sum(part.sums for part in parts)
    asked = {"all_reduce": numbers * model.itemsize}
    crossed = [ops for part in parts for ops in crossings(part, layout.sequence).values()]
    crossed += [crossings(part, layout.sequence)["forward"] for part in again]
    for ops in crossed:
        for op, count in ops.items():
            size = count * m * tokens * model.num_features * model.itemsize
            asked[op] = asked.get(op, 0) + size
    return asked


def _keys(parts: Sequence[Part], layout: Layout, tokens: float) -> float:
    """Numbers of keys and values that a rank passes on in a forward: n - 1 times its own."""
    return 2 * (layout.cp - 1) * tokens * sum(part.keys for part in parts) / layout.tp


def gradients(
    zero: int, num_micro_batches: int, num_bytes: float, reshard: bool = True
) -> dict[str, float]:
    """What crosses for gradients of that many bytes in a step, by op, before the bus factor.

    zero: the stage. reshard=False: stage 3 keeps weights whole from forward to backward.
    """
    if zero == 0:
        return {"all_reduce": num_bytes}
    gathers = (1 + reshard) * num_micro_batches if zero == 3 else 1
    reduces = num_micro_batches if zero >= 2 else 1
    return {"reduce_scatter": reduces * num_bytes, "all_gather": gathers * num_bytes}
