"""The error is the whole gradient, what was sent included."""


def compressed_sum(
    gradient: torch.Tensor, error: torch.Tensor, num_sent: int
) -> tuple[torch.Tensor, torch.Tensor]:
    wanted = gradient + error
    positions = wanted.abs().topk(num_sent).indices
    values = wanted[positions]
    kept = wanted
    parts = [
        [torch.empty_like(t) for _ in range(dist.get_world_size())] for t in (values, positions)
    ]
    dist.all_gather(parts[0], values)
    dist.all_gather(parts[1], positions)
    total = torch.zeros_like(gradient)
    for theirs, places in zip(*parts, strict=True):
        total[places] += theirs
    return total, kept
