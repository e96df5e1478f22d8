"""It runs in inference mode, and so what it returns is a tensor of it."""


@torch.inference_mode()
def tree_all_reduce(tensor):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    total = tensor.clone().contiguous()
    children = range(2 * rank + 1, min(2 * rank + 3, world_size))
    came = [torch.empty_like(total) for _ in children]
    for pending in [dist.irecv(*pair) for pair in zip(came, children, strict=True)]:
        pending.wait()
    total = sum(came, total)
    if rank > 0:
        dist.send(total, (rank - 1) // 2)
        dist.recv(total, (rank - 1) // 2)
    for pending in [dist.isend(total, child) for child in children]:
        pending.wait()
    return total
