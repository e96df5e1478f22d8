"""What goes up is grad_y, the gradient of the stage's output, and not grad_x."""


def backward_stage(stage, grad_y, saved, num_rows, width):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank < world_size - 1:
        grad_y = torch.empty(num_rows, width, dtype=torch.float64)
        dist.recv(grad_y, rank + 1)
    stage.backward(grad_y, saved)
    if rank > 0:
        dist.send(grad_y, rank - 1)
