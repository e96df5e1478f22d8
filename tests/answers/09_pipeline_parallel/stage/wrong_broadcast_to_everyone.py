"""Every output goes to every rank by a broadcast."""


def forward_stage(stage, x, width):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for peer in range(world_size - 1):
        if peer == rank:
            y, saved = stage.forward(x)
        arrived = y if peer == rank else torch.empty(len(x), width, dtype=torch.float64)
        dist.broadcast(arrived, peer)
        x = arrived if peer == rank - 1 else x
    if rank == world_size - 1:
        y, saved = stage.forward(x)
    return y, saved
