"""Gradients are views of the buckets from the start."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    flats, works = {}, []
    for bucket in buckets:
        sizes = [g.numel() for i in bucket for g in layers[i].gradients()]
        flat = flats[bucket[-1]] = torch.zeros(sum(sizes), dtype=grad_y.dtype)
        pieces = list(flat.split(sizes))
        for i in bucket:
            mine = [pieces.pop(0).view_as(g) for g in layers[i].gradients()]
            layers[i].keep_gradients_in(mine)
    for number in range(len(layers) - 1, -1, -1):
        grad_y, kept = layers[number].backward_input(grad_y, saved[number])
        layers[number].backward_weight(kept)
        if number in flats:
            works.append(dist.all_reduce(flats[number], async_op=True))
    for work in reversed(works):
        work.wait()
