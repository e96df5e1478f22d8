"""The whole model on every rank and no message: a row at a time, and all layers forward again."""


def make_step(weights, layout, num_sequences):
    layers = gpt_layers(weights)
    model = MLP(layers)
    velocity = model.gradients()

    def step(tokens, following):
        for each in velocity:
            each.mul_(MOMENTUM)
        total = 0.0
        for x, y in zip(tokens.split(1), following.split(1), strict=True):
            inputs = []
            for layer in layers:
                inputs.append(x)
                x = layer.forward(x)[0]
            loss, grad = next_token_loss(x, y, num_sequences)
            total += float(loss)
            for layer in reversed(layers[1:]):
                grad = layer.backward(grad, layer.forward(inputs.pop())[1])
            layers[0].backward_first(grad, layers[0].forward(inputs.pop())[1])
        for parameter, each in zip(model.parameters(), velocity, strict=True):
            parameter.add_(each, alpha=-LR)
        return total

    return step
