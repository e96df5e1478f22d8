"""A broadcast by adding zeros, which sends twice as much."""


def rows_of_replica(groups, batch):
    replica, d = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = batch.tensor_split(d)[replica].clone()
    if dist.get_rank(groups["tp"]) != 0:
        rows.zero_()
    dist.all_reduce(rows, group=groups["tp"])
    return rows
