"""Data parallelism on all ranks: right losses, but every rank holds the model, and sends it."""


def make_step(weights, layout, num_sequences):
    model = MLP(gpt_layers(weights))
    optimizer = SGD(model.parameters(), LR, MOMENTUM)

    def step(tokens, following):
        model.zero_gradients()
        n, rank = dist.get_world_size(), dist.get_rank()
        x, y = (rows.tensor_split(n)[rank] for rows in (tokens, following))
        logits, saved = model.forward(x)
        loss, grad = next_token_loss(logits, y, len(tokens))
        model.backward_first(grad, saved)
        for gradient in model.gradients():
            dist.all_reduce(gradient)
        optimizer.step(model.gradients())
        loss = loss.double()
        dist.all_reduce(loss)
        return float(loss)

    return step
