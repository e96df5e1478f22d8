"""The whole batch is broadcast, and cut afterwards."""


def rows_of_replica(groups, batch):
    batch = batch.clone()
    dist.broadcast(batch, group=groups["tp"], group_src=0)
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    return batch.tensor_split(num_replicas)[replica].clone()
