"""What goes down is the stage's input, not its output."""


def forward_stage(stage, x, width):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        x = torch.empty(len(x), width, dtype=torch.float64)
        dist.recv(x, rank - 1)
    y, saved = stage.forward(x)
    if rank < world_size - 1:
        dist.send(x, rank + 1)
    return y, saved
