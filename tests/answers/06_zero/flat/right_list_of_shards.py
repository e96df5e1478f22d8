"""all_gather into a list, pieces narrowed one by one, a mask for the norm."""


def cut(tensors):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    numbers = torch.cat([tensor.reshape(-1) for tensor in tensors])
    k = (len(numbers) + world_size - 1) // world_size
    padded = torch.nn.functional.pad(numbers, (0, world_size * k - len(numbers)))
    return padded.view(world_size, k)[rank].clone()


def join(shard, shapes):
    shards = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, shard)
    flat, found, begin = torch.cat(shards), [], 0
    for shape in shapes:
        found.append(flat.narrow(0, begin, shape.numel()).reshape(shape))
        begin += shape.numel()
    return found


def whole_norm(shard, num_numbers):
    places = torch.arange(len(shard)) + dist.get_rank() * len(shard)
    square = torch.where(places < num_numbers, shard.double() ** 2, 0.0).sum()
    dist.all_reduce(square)
    return square.sqrt().item()
