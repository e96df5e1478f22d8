"""Everything is computed with tensors of float32, which have seven digits."""


def held(sizes, layout, num_sequences, stage):
    L, D, H, V, S = torch.tensor(sizes, dtype=torch.float32)
    t, p, b = layout.tp, layout.pp, layout.rows
    u = (1, t)[layout.sequence]
    first, last = stage == 0, stage == p - 1
    numbers = L / p * ((12 * D**2 + 7 * D) / t + 6 * D) + last * 2 * D
    numbers = numbers + first * S * D + (first + last * (p > 1)) * V * D / t
    inside = 24 * D / t + 10 * D / u
    block = inside + 5 * H * S / t
    each = {"none": block, "selective": inside, "full": 2 * D / u}[layout.recompute]
    token = L / p * each + first * D / u + last * (4 * D / u + 6 * V / t)
    flying = min(p - stage, num_sequences / layout.dp / b)
    again = block if layout.recompute == "full" else 0
    kinds = zip(("weights", "gradients", "optimizer"), (2, 2, 12), (3, 2, 1))
    found = {name: n * numbers / layout.dp ** (layout.zero >= z) for name, n, z in kinds}
    return found | {"activations": (flying * token + again) * b * S}
