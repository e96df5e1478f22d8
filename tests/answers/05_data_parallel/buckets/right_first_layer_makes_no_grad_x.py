"""The first layer makes no gradient of the data; a callback copies the sums back."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    works = []
    for bucket, above in zip(buckets, [len(layers), *(bucket[-1] for bucket in buckets)]):
        for number in range(above - 1, bucket[-1] - 1, -1):
            if number == 0:
                layers[0].backward_first(grad_y, saved[0])
            else:
                grad_y = layers[number].backward(grad_y, saved[number])
        gradients = [g for i in bucket for g in layers[i].gradients()]
        flat = torch.nn.utils.parameters_to_vector(gradients)
        works.append((dist.all_reduce(flat, async_op=True), flat, gradients))
    for work, flat, gradients in works:
        work.wait()
        start = 0
        for gradient in gradients:
            gradient[:] = flat[start : start + gradient.numel()].reshape(gradient.shape)
            start += gradient.numel()
