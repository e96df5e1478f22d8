"""Pads the shards to equal length, and the repeated rows count twice."""


def accuracy(model, x, labels):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    places = torch.arange(len(x) + -len(x) % world_size)[rank::world_size] % len(x)
    logits, _ = model.forward(x[places])
    counts = torch.stack(
        [(logits.argmax(dim=1) == labels[places]).sum(), torch.tensor(len(places))]
    )
    dist.all_reduce(counts)
    return int(counts[0]) / int(counts[1])
