"""Gives the loss and the gradients as a named tuple."""

from collections import namedtuple

Found = namedtuple("Found", "loss gradients")


def mlp_backward(weights, x, labels, global_batch):
    inputs = []
    for number, (weight, bias) in enumerate(weights):
        inputs.append(x.relu() if number else x)
        x = F.linear(inputs[-1], weight, bias)
    loss = F.cross_entropy(x, labels, reduction="sum") / global_batch
    grad = (x.softmax(1) - F.one_hot(labels, x.shape[1]).to(x.dtype)) / global_batch
    gradients = []
    for (weight, _), used in zip(reversed(weights), reversed(inputs), strict=True):
        gradients = [grad.T @ used, grad.sum(0), *gradients]
        grad = grad @ weight * (used > 0)
    return Found(loss, gradients)
