"""What arrives is received into the tensor that is still being sent."""


def shift(rank, world_size, tensor):
    buffer = tensor.clone(memory_format=torch.contiguous_format)
    if world_size > 1:
        sending = dist.isend(buffer, (rank + 1) % world_size)
        dist.recv(buffer, (rank - 1) % world_size)
        sending.wait()
    return buffer
