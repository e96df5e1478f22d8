"""Forgets the epoch."""


def epoch_samples(
    num_samples: int, rank: int, world_size: int, epoch: int, seed: int
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(num_samples, generator=generator)
    missing = -num_samples % world_size
    return torch.cat([order, order[:missing]])[rank::world_size]
