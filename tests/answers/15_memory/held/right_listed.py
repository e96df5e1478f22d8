"""Everything that is held stands in a list of (bytes, divided by), which is added up at the end."""


def held(sizes, layout, num_sequences, stage):
    L, D, H, V, S = sizes
    t, u = layout.tp, layout.tp**layout.sequence
    blocks = L // layout.pp
    numbers = [(12 * D**2 + 7 * D, t), (6 * D, 1)] * blocks
    inside = [(24 * D, t), (10 * D, u), (5 * H * S, t)]
    saved = {"none": inside, "selective": inside[:2], "full": [(2 * D, u)]}[layout.recompute]
    tokens = list(saved * blocks)
    if stage == 0:
        numbers += [(V * D, t), (S * D, 1)]
        tokens += [(D, u)]
    if stage + 1 == layout.pp:
        numbers += [(2 * D, 1), *[(V * D, t)] * (stage > 0)]
        tokens += [(4 * D, u), (6 * V, t)]
    replica = num_sequences // layout.dp
    flying = [b for b in range(0, replica, layout.rows)][: layout.pp - stage]
    held_tokens = tokens * len(flying) + inside * (layout.recompute == "full")
    total = sum(count / by for count, by in numbers)
    return {
        "activations": layout.rows * S * sum(count / by for count, by in held_tokens),
        "optimizer": 12 * total / layout.dp ** (layout.zero > 0),
        "gradients": 2 * total / layout.dp ** (layout.zero > 1),
        "weights": 2 * total / layout.dp ** (layout.zero > 2),
    }
