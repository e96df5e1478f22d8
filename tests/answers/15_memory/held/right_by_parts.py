"""Whole numbers and fractions, part by part, in three functions."""

from fractions import Fraction


def parameters_of(sizes, t, stages, stage):
    L, D, _, V, S = sizes
    table = Fraction(V * D, t)
    parts = [(Fraction(12 * D * D + 7 * D, t) + 6 * D)] * (L // stages)
    if stage == 0:
        parts += [table, S * D]
    if stage == stages - 1:
        parts += [2 * D] if stages == 1 else [2 * D, table]
    return sum(parts)


def token_of(sizes, layout, stage, how):
    _, D, H, V, S = sizes
    t, u = layout.tp, layout.tp if layout.sequence else 1
    scores = 0 if how == "selective" else Fraction(5 * H * S, t)
    block = (
        Fraction(2 * D, u) if how == "full" else Fraction(24 * D, t) + Fraction(10 * D, u) + scores
    )
    ends = [Fraction(D, u)] if stage == 0 else []
    if stage == layout.pp - 1:
        ends += [Fraction(4 * D, u), Fraction(6 * V, t)]
    return block, sum(ends)


def held(sizes, layout, num_sequences, stage):
    numbers = parameters_of(sizes, layout.tp, layout.pp, stage)
    found = {"weights": 2 * numbers, "gradients": 2 * numbers, "optimizer": 12 * numbers}
    for kind in ["optimizer", "gradients", "weights"][: layout.zero]:
        found[kind] /= layout.dp
    block, ends = token_of(sizes, layout, stage, layout.recompute)
    each = sizes.layers // layout.pp * block + ends
    flight = min(layout.pp - stage, num_sequences // layout.dp // layout.rows)
    total = flight * each
    if layout.recompute == "full":
        total += token_of(sizes, layout, stage, "none")[0]
    return found | {"activations": total * layout.rows * sizes.positions}
