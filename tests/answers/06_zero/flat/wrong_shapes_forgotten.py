"""The pieces come back flat."""


def join(shard, shapes):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather_into_tensor(flat, shard)
    sizes = [shape.numel() for shape in shapes]
    return list(flat[: sum(sizes)].split(sizes))
