"""Gradients become views of the buckets; values and positions travel in one tensor."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    pending = []
    for number in range(len(layers) - 1, -1, -1):
        grad_y, kept = layers[number].backward_input(grad_y, saved[number])
        layers[number].backward_weight(kept)
        for bucket in buckets:
            if bucket[-1] == number:
                gradients = [g for i in bucket for g in layers[i].gradients()]
                flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
                for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
                    gradient.set_(piece.view(gradient.shape))
                pending.append(dist.all_reduce(flat, async_op=True))
    for work in reversed(pending):
        work.wait()


def compressed_sum(gradient, error, num_sent):
    kept = gradient + error
    positions = kept.abs().argsort(descending=True)[:num_sent]
    message = torch.stack([positions.double(), kept[positions]])
    arrived = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    dist.all_gather(arrived, message)
    kept[positions] = 0
    everything = torch.cat(arrived, dim=1)
    return torch.zeros_like(kept).index_add_(0, everything[0].long(), everything[1]), kept
