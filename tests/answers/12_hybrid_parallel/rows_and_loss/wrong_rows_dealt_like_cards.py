"""Replica r gets the rows r, r + d, r + 2d, ..."""


def rows_of_replica(groups, batch):
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = batch[replica::num_replicas].clone()
    dist.broadcast(rows, group=groups["tp"], group_src=0)
    return rows
