"""Has the derivatives made by forward-mode autograd, which records nothing."""


def mlp_backward(weights, x, labels, global_batch):
    def loss(*tensors):
        y = x
        for number in range(0, len(tensors), 2):
            y = F.linear(y.relu() if number else y, *tensors[number : number + 2])
        return F.cross_entropy(y, labels, reduction="sum") / global_batch

    tensors = [tensor.clone() for pair in weights for tensor in pair]
    every = tuple(range(len(tensors)))
    return loss(*tensors), list(torch.func.jacfwd(loss, argnums=every)(*tensors))
