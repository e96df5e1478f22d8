"""The tensor that receives is torch's default dtype, float32."""


def forward_stage(stage, x, width):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        x = torch.empty(len(x), width)
        dist.recv(x, rank - 1)
        x = x.double()
    y, saved = stage.forward(x)
    if rank < world_size - 1:
        dist.send(y, rank + 1)
    return y, saved
