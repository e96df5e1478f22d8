"""One stage is a function of its own; the limit is a filter at the end."""


def fullest(sizes, at, num_sequences):
    def stage(number):
        d, p, first, last = sizes.features, at.pp, number == 0, number == at.pp - 1
        shared = at.tp if at.sequence else 1
        m = num_sequences // at.dp // at.rows
        micro = at.rows * sizes.positions
        if at.chunks == 1:
            flight = min(p - number, m)
        else:
            flight = min(2 * (p - 1 - number) + (at.chunks - 1) * p + 1, m * at.chunks)
            flight = flight / at.chunks
        block = 24 * d / at.tp + 8 * d / shared
        kept, again = (2 * d / shared, block) if at.recompute == "full" else (block, 0)
        token = kept * sizes.layers / p
        if last:
            token += 4 * d / shared
        n = parameters(sizes, at, last and not first)
        return {
            "buffers": 2 * 10**9,
            "loss": 10 * micro * sizes.vocabulary / at.tp if last else 0,
            "activations": micro * token * flight + micro * again,
            "optimizer": 12 * n / at.dp**at.zero,
            "gradients": 4 * n,
            "weights": 2 * n,
        }

    first, last = stage(0), stage(at.pp - 1)
    return last if sum(last.values()) > sum(first.values()) else first


def that_fit(sizes, layouts, num_sequences, num_bytes):
    pairs = []
    for number, at in enumerate(layouts):
        pairs.append((sum(fullest(sizes, at, num_sequences).values()), number))
    return [layouts[number] for held, number in sorted(pairs) if held <= num_bytes]
