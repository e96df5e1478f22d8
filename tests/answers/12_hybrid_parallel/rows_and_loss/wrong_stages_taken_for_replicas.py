"""Cuts the batch by tensor-parallel groups, so stages of one replica differ."""


def rows_of_replica(groups, batch):
    tp = dist.get_world_size(groups["tp"])
    replica, num_replicas = dist.get_rank() // tp, dist.get_world_size() // tp
    rows = batch.tensor_split(num_replicas)[replica].clone()
    dist.broadcast(rows, group=groups["tp"], group_src=0)
    return rows
