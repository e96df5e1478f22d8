"""Both run in inference mode, and so what they return is a tensor of it."""


@torch.inference_mode()
def shift(rank, world_size, tensor):
    arrived = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if world_size == 1:
        return arrived.copy_(tensor)
    sending = dist.isend(tensor.contiguous(), group_dst=(rank + 1) % world_size, tag=7)
    dist.irecv(arrived, group_src=(rank - 1) % world_size, tag=7).wait()
    sending.wait()
    return arrived


@torch.inference_mode()
def running_total(rank, world_size, count):
    before = torch.zeros_like(count)
    if rank > 0:
        dist.recv(before, rank - 1)
    total = before + count
    if rank < world_size - 1:
        dist.send(total, rank + 1)
    return total
