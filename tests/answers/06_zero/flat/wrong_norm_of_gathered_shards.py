"""Everything is gathered to find one number."""


def whole_norm(shard, num_numbers):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather_into_tensor(flat, shard)
    return float(flat[:num_numbers].double().norm())
