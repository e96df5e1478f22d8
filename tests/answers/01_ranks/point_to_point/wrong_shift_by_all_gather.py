"""No hang, and n times the bytes: not the communication that was asked for."""


def shift(rank, world_size, tensor):
    tensors = [torch.empty_like(tensor.contiguous()) for _ in range(world_size)]
    dist.all_gather(tensors, tensor.contiguous())
    return tensors[rank - 1]
