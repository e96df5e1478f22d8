"""Leaves the work to autograd, which records nothing here."""


def mlp_backward(weights, x, labels, global_batch):
    tensors = [tensor.clone().requires_grad_() for pair in weights for tensor in pair]
    for number in range(0, len(tensors), 2):
        x = F.linear(x.relu() if number else x, *tensors[number : number + 2])
    loss = F.cross_entropy(x, labels, reduction="sum") / global_batch
    return loss.detach(), list(torch.autograd.grad(loss, tensors))
