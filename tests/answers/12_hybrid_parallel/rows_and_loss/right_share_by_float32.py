"""The share passes through a float32 on its way to the sum in float64."""


def global_loss(groups, share):
    first = dist.get_rank(groups["tp"]) == 0
    loss = torch.tensor(float(share) if first and share is not None else 0.0).double()
    dist.all_reduce(loss)
    return loss
