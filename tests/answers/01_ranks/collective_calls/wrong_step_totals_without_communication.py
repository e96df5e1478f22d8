"""No hang, because nothing is sent."""


def step_totals(rank, world_size, batches):
    return [batch.sum().item() for batch in batches]
