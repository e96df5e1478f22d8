"""Every tp group's broadcast begins at global rank 0, which only one of them has."""


def rows_of_replica(groups, batch):
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = batch.tensor_split(num_replicas)[replica].clone()
    dist.broadcast(rows, src=0, group=groups["tp"])
    return rows
