"""The rows are a view of the caller's batch, which the broadcast overwrites."""


def rows_of_replica(groups, batch):
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = batch.tensor_split(num_replicas)[replica]
    dist.broadcast(rows, group=groups["tp"], group_src=0)
    return rows
