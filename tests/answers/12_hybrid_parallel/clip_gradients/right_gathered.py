"""Every rank's norm is gathered, and the norm of these norms taken."""


def clip_gradients(groups, gradients, placements, max_norm):
    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))
    mine = [
        torch.linalg.vector_norm(gradient)
        for gradient, word in zip(gradients, placements, strict=True)
        if word == "sharded" or (first_of_tp and (word != "tied" or first_stage))
    ]
    norm = torch.linalg.vector_norm(torch.stack(mine)).reshape(1)
    norms = torch.empty(dist.get_world_size(groups["tp-pp"]), dtype=torch.float64)
    dist.all_gather_into_tensor(norms, norm, group=groups["tp-pp"])
    norm = torch.linalg.vector_norm(norms).item()
    if norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / norm)
    return norm
