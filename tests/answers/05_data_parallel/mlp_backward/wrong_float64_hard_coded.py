"""Everything is turned into float64, whatever the weights are."""


def mlp_backward(weights, x, labels, global_batch):
    weights = [(weight.double(), bias.double()) for weight, bias in weights]
    x, inputs = x.double(), []
    for number, (weight, bias) in enumerate(weights):
        inputs.append(x.relu() if number else x)
        x = inputs[-1] @ weight.T + bias
    logs = torch.log_softmax(x, dim=1)
    rows = torch.arange(len(labels))
    loss = -logs[rows, labels].sum() / global_batch
    grad = logs.exp()
    grad[rows, labels] -= 1
    grad, gradients = grad / global_batch, []
    for (weight, _), given in zip(weights[::-1], inputs[::-1]):
        gradients = [grad.T @ given, grad.sum(dim=0), *gradients]
        grad = (grad @ weight) * (given > 0)
    return loss, gradients
