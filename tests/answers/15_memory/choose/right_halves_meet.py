"""Every choice of each half, in tensors; for each of the first half the best of the second."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"the chain saves {least} bytes at least, {num_bytes} are allowed")

    def every(part):
        saved = work = torch.zeros(1, dtype=torch.int64)
        for whole, again, more in part:
            saved = torch.cat([saved + whole, saved + again])
            work = torch.cat([work, work + more])
        return saved, work

    half = len(layers) // 2
    saved_a, work_a = every(layers[:half])
    saved_b, work_b = every(layers[half:])
    saved_b, order = saved_b.sort()
    least_b, where_b = work_b[order].cummin(0)
    place = torch.searchsorted(saved_b, num_bytes - saved_a, right=True) - 1
    total = torch.where(place >= 0, work_a + least_b[place.clamp(min=0)], 2**40)
    a = int(total.argmin())
    b = int(order[where_b[place[a]]])
    chosen = [k for k in range(half) if a >> k & 1]
    return chosen + [half + k for k in range(len(layers) - half) if b >> k & 1]
