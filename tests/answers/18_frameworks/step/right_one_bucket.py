"""All gradients of a kind travel in one call, and the loss goes with the tokens' own sum."""


def sum_together(gradients, group):
    if not gradients:
        return
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat, group=group)
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, flat.split(sizes), strict=True):
        gradient.copy_(part.view_as(gradient))


def make_step(weights, layout, num_sequences):
    groups = groups_for_this_rank(layout.groups, GROUPS)
    (stage,) = chunks_of(weights, groups)
    m = layout.num_micro_batches(num_sequences)
    boundary = weights.positions.shape, weights.positions.dtype
    schedule = one_forward_one_backward(layout.pp, m)
    pipeline = Pipeline([stage], schedule, *boundary, groups["pp"])
    optimizer = SGD(stage.parameters(), LR, MOMENTUM)

    def of(kind):
        pairs = zip(stage.gradients(), stage.placements, strict=True)
        return [gradient for gradient, placement in pairs if kind in ("", placement)]

    def step(tokens, following):
        stage.zero_gradients()
        mine = dist.get_rank(groups["dp"])
        x, y = (rows.tensor_split(layout.dp)[mine] for rows in (tokens, following))
        share = pipeline.step(cut(x, m), cut(y, m), next_token_loss, len(tokens)).loss
        sum_together(of("partial"), groups["tp"])
        sum_together(of(""), groups["dp"])
        if of("tied"):
            sum_together(of("tied"), groups["embedding"])
        optimizer.step(stage.gradients())
        loss = torch.tensor(0.0 if share is None else float(share), dtype=torch.float64)
        dist.all_reduce(loss)
        return float(loss) / layout.tp

    return step
