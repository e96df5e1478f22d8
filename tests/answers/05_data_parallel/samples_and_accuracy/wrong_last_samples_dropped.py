"""Drops what does not divide."""


def epoch_samples(
    num_samples: int, rank: int, world_size: int, epoch: int, seed: int
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(num_samples, generator=generator)
    return order[: num_samples // world_size * world_size][rank::world_size]
