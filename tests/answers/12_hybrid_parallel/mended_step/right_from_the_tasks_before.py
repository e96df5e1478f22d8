"""Made of the functions of tasks 1 to 3."""


def mended_step(model, groups, tokens, targets, num_micro_batches, lr, max_norm):
    x, y = rows_of_replica(groups, tokens), rows_of_replica(groups, targets)
    share = model.run(x, y, num_micro_batches, len(tokens))
    sum_gradients(groups, model.gradients, model.placements)
    norm = clip_gradients(groups, model.gradients, model.placements, max_norm)
    for parameter, gradient in zip(model.parameters, model.gradients, strict=True):
        parameter.sub_(gradient, alpha=lr)
    return global_loss(groups, share).item(), norm
