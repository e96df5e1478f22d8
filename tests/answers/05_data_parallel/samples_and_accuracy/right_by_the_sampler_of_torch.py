"""Asks torch's sampler; counts in a float64."""


def epoch_samples(num_samples, rank, world_size, epoch, seed):
    sampler = DistributedSampler(range(num_samples), world_size, rank, seed=seed)
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler))


def accuracy(model, x, labels):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    counts = torch.zeros(2, dtype=torch.float64)
    for row in range(rank, len(x), world_size):
        counts[0] += model.forward(x[row : row + 1])[0].argmax() == labels[row]
        counts[1] += 1
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()
