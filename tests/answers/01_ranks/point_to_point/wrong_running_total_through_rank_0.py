"""Rank 0 adds for everybody: other messages than asked for."""


def running_total(rank, world_size, count):
    total = count.clone()
    if rank > 0:
        dist.send(count, 0)
        dist.recv(total, 0)
        return total
    running, totals = count.clone(), []
    for peer in range(1, world_size):
        theirs = torch.empty_like(count)
        dist.recv(theirs, peer)
        running = running + theirs
        totals.append(running)
    for peer in range(1, world_size):
        dist.send(totals[peer - 1], peer)
    return total
