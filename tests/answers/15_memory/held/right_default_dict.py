"""Adds up in a default dict, by fractions."""

from collections import defaultdict
from fractions import Fraction


def held(sizes, layout, num_sequences, stage):
    num_layers, features, heads, vocabulary, positions = sizes
    split, last = (layout.sequence and layout.tp) or 1, stage == layout.pp - 1
    found = defaultdict(float)
    numbers = Fraction(num_layers, layout.pp) * (
        Fraction(12 * features**2 + 7 * features, layout.tp) + 6 * features
    )
    if stage == 0:
        numbers += Fraction(vocabulary * features, layout.tp) + positions * features
    if last:
        numbers += 2 * features
        if layout.pp > 1:
            numbers += Fraction(vocabulary * features, layout.tp)
    for kind, num_bytes, zero in ("weights", 2, 3), ("gradients", 2, 2), ("optimizer", 12, 1):
        found[kind] += float(num_bytes * numbers / (layout.dp if layout.zero >= zero else 1))
    rest = Fraction(24 * features, layout.tp) + Fraction(10 * features, split)
    scores = Fraction(5 * heads * positions, layout.tp)
    block = {"none": rest + scores, "selective": rest, "full": Fraction(2 * features, split)}
    token = num_layers // layout.pp * block[layout.recompute]
    if stage == 0:
        token += Fraction(features, split)
    if last:
        token += Fraction(4 * features, split) + Fraction(6 * vocabulary, layout.tp)
    tokens = layout.rows * positions
    count = num_sequences // layout.dp // layout.rows
    found["activations"] += float(tokens * token * min(layout.pp - stage, count))
    if layout.recompute == "full":
        found["activations"] += float(tokens * (rest + scores))
    return found
