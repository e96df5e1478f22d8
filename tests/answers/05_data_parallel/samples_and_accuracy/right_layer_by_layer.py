"""Takes the model for the MLP that it is: its parameters' dtype, and its layers one by one."""


def accuracy(model, x, labels):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = slice(rank, None, world_size)
    logits = x[mine].to(model.parameters()[0].dtype)
    for layer in model.layers:
        logits, _ = layer.forward(logits)
    right = (logits.argmax(dim=1) == labels[mine]).sum()
    dist.all_reduce(right)
    return right.item() / len(x)
