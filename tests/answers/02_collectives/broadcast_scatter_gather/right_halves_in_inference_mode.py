"""Each half of the ranks has its own root, and the result is a tensor of inference mode."""


@torch.inference_mode()
def broadcast(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    result = tensor.clone(memory_format=torch.contiguous_format)
    ranks = [(root + k) % world_size for k in range(world_size)]
    while len(ranks) > 1:
        near, far = ranks[: len(ranks) // 2], ranks[len(ranks) // 2 :]
        if rank == near[0]:
            dist.send(result, dst=far[0], tag=7)
        elif rank == far[0]:
            dist.recv(result, src=near[0], tag=7)
        ranks = near if rank in near else far
    return result
