"""Contiguous blocks for the metric; all-gather of whole numbers; wraps round with a modulus."""


def epoch_samples(num_samples, rank, world_size, epoch, seed):
    torch.manual_seed(seed + epoch)
    order = torch.randperm(num_samples).tolist()
    count = (num_samples + world_size - 1) // world_size
    return torch.tensor([order[(rank + i * world_size) % num_samples] for i in range(count)])


def accuracy(model, x, labels):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    answers = labels.tensor_split(world_size)[rank]
    logits, _ = model.forward(x.tensor_split(world_size)[rank])
    right = torch.tensor([(logits.argmax(1) == answers).sum()])
    everybody = [torch.empty_like(right) for _ in range(world_size)]
    dist.all_gather(everybody, right)
    return sum(map(int, everybody)) / len(x)
