"""Sets of indices by dimension, and the library of torch for cutting."""


def shard_box(shape, cuts, place):
    pieces = [
        torch.arange(size).tensor_split(count)[number].tolist()
        for size, count, number in zip(shape, cuts, place)
    ]
    return Box(
        tuple(piece[0] if piece else 0 for piece in pieces), tuple(len(piece) for piece in pieces)
    )


def reads(saved, wanted):
    def along(box, d):
        return range(box.starts[d], box.starts[d] + box.sizes[d])

    found, dims, count = [], range(len(wanted.sizes)), 0
    for number, box in enumerate(saved):
        shared = [sorted(set(along(box, d)) & set(along(wanted, d))) for d in dims]
        if box in saved[:number] or not all(shared):
            continue
        count += math.prod(map(len, shared))
        there, here = (
            tuple(
                slice(each[0] - start, each[-1] + 1 - start)
                for each, start in zip(shared, base.starts)
            )
            for base in (box, wanted)
        )
        found.append([number, there, here])
    if count < math.prod(wanted.sizes):
        raise ValueError(f"missing: {math.prod(wanted.sizes) - count}")
    return found
