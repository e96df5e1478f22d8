"""Room for the first rank's rows is made for whole numbers in two dimensions, as tokens are."""


def rows_of_replica(groups, batch):
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = batch.tensor_split(num_replicas)[replica]
    if dist.get_rank(groups["tp"]) == 0:
        rows = rows.clone()
    else:
        rows = torch.empty(rows.shape[0], rows.shape[1], dtype=torch.int64)
    dist.broadcast(rows, group=groups["tp"], group_src=0)
    return rows
