"""Deals the rows out by numpy, which has no bfloat16, and takes two dimensions for granted."""


def rows_of_replica(groups, batch):
    import numpy

    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    rows = numpy.array_split(batch.numpy(), num_replicas)[replica][:, :].copy()
    rows = torch.from_numpy(rows)
    dist.broadcast(rows, group=groups["tp"], group_src=0)
    return rows
