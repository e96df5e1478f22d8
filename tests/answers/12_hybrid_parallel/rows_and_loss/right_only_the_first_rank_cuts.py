"""The first rank of tp alone reads its batch; the others make room."""


def rows_of_replica(groups, batch):
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    first = dist.get_global_rank(groups["tp"], 0)
    rows = batch.tensor_split(num_replicas)[replica]
    rows = rows.clone() if dist.get_rank() == first else torch.empty_like(rows)
    dist.broadcast(rows, src=first, group=groups["tp"])
    return rows
