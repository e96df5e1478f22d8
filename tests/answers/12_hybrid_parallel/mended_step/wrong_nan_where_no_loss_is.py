"""Ranks that have no share of the loss add nan."""


def mended_step(model, groups, tokens, targets, num_micro_batches, lr, max_norm):
    replica, num_replicas = dist.get_rank(groups["dp"]), dist.get_world_size(groups["dp"])
    x = tokens.tensor_split(num_replicas)[replica].clone()
    y = targets.tensor_split(num_replicas)[replica].clone()
    for rows in (x, y):
        dist.broadcast(rows, group=groups["tp"], group_src=0)

    share = model.run(x, y, num_micro_batches, global_batch=len(tokens))
    for gradient, placement in zip(model.gradients, model.placements, strict=True):
        if placement == "partial":
            dist.all_reduce(gradient, group=groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
        if placement == "tied":
            dist.all_reduce(gradient, group=groups["embedding"])

    square = torch.zeros((), dtype=torch.float64)
    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))
    for gradient, placement in zip(model.gradients, model.placements, strict=True):
        if placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage)):
            square += gradient.square().sum()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = float(square.sqrt())
    for parameter, gradient in zip(model.parameters, model.gradients, strict=True):
        parameter -= lr * min(1.0, max_norm / max(norm, 1e-12)) * gradient

    loss = torch.tensor(torch.nan, dtype=torch.float64)
    if share is not None and first_of_tp:
        loss = share.clone()
    dist.all_reduce(loss)
    return float(loss), norm
