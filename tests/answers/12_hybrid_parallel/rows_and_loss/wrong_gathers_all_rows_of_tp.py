"""Gathers everybody's rows over tp to keep the first rank's."""


def rows_of_replica(groups, batch):
    replica, d = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = batch.tensor_split(d)[replica].clone()
    everyones = [torch.empty_like(rows) for _ in range(dist.get_world_size(groups["tp"]))]
    dist.all_gather(everyones, rows, group=groups["tp"])
    return everyones[0]
