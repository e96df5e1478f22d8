"""backward_stage also returns the gradient that it sent up."""


def backward_stage(stage, grad_y, saved, num_rows, width):
    if dist.get_rank() < dist.get_world_size() - 1:
        grad_y = torch.empty(num_rows, width, dtype=torch.float64)
        dist.recv(grad_y, dist.get_rank() + 1)
    grad_x = stage.backward(grad_y, saved)
    if dist.get_rank() > 0:
        dist.send(grad_x, dist.get_rank() - 1)
    return grad_x
