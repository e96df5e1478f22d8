"""Rows go from each rank of tp to the next, and shares over dp before the stages hear of them."""


def rows_of_replica(groups, batch):
    tp, dp = groups["tp"], groups["dp"]
    place, last = dist.get_rank(tp), dist.get_world_size(tp) - 1
    rows = batch.tensor_split(dist.get_world_size(dp))[dist.get_rank(dp)].clone()
    if place > 0:
        dist.recv(rows, group=tp, group_src=place - 1)
    if place < last:
        dist.send(rows, group=tp, group_dst=place + 1)
    return rows


def global_loss(groups, share):
    total = torch.zeros((), dtype=torch.float64)
    if share is not None:
        total += share
        dist.all_reduce(total, group=groups["dp"])
    last = dist.get_world_size(groups["pp"]) - 1
    dist.broadcast(total, group=groups["pp"], group_src=last)
    return total
