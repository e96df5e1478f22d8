"""Experts as they are numbered."""


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    loads = torch.bincount(chosen.flatten(), minlength=num_experts)
    dist.all_reduce(loads)
    return [part.tolist() for part in torch.arange(num_experts).tensor_split(n)]
