"""All-gather after Bruck: what a rank has doubles in each round, for any number of ranks."""


def all_gather(shard, num_rows):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    lengths = [len(rows) for rows in torch.empty(num_rows).tensor_split(world_size)]
    have = [shard.contiguous()]  # of rank, rank + 1, ...
    while (distance := len(have)) < world_size:
        count = min(distance, world_size - distance)
        rows = [lengths[(rank + distance + i) % world_size] for i in range(count)]
        arrived = shard.new_empty(sum(rows), *shard.shape[1:])
        sending = dist.isend(torch.cat(have[:count]), (rank - distance) % world_size)
        dist.recv(arrived, (rank + distance) % world_size)
        sending.wait()
        have += arrived.split(rows)
    return torch.cat([have[(peer - rank) % world_size] for peer in range(world_size)])
