"""The next weights are under way while this layer computes, and gradients while others are."""


def ask(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    return flat, dist.all_gather_into_tensor(flat, shard, async_op=True)


def weights_in_turn(order, shards, shapes):
    following = ask(shards[order[0]])
    for place, number in enumerate(order):
        (flat, work), following = following, None
        work.wait()
        if place + 1 < len(order):
            following = ask(shards[order[place + 1]])
        (out, into), bias = shapes[number]
        yield number, flat[: out * into].view(out, into), flat[out * into : out * into + bias[0]]
        del flat


def stack_forward(x, shards, shapes):
    kept = [x]
    for _, weight, bias in weights_in_turn(range(len(shards)), shards, shapes):
        kept.append(layer_forward(kept[-1], weight, bias))
    return kept[-1], kept


def stack_backward(grad_y, saved, shards, shapes):
    found, sending = [None] * len(shards), []
    for number, weight, _ in weights_in_turn(range(len(shards))[::-1], shards, shapes):
        grad_y, (grad_weight, grad_bias) = layer_backward(
            grad_y, saved[number], saved[number + 1], weight
        )
        flat = grad_weight.new_empty(dist.get_world_size() * len(shards[number]))
        flat[: weight.numel()] = grad_weight.flatten()
        flat[weight.numel() : weight.numel() + len(grad_bias)] = grad_bias
        for work, _ in sending:
            work.wait()
        found[number] = torch.empty_like(shards[number])
        sending = [(dist.reduce_scatter_tensor(found[number], flat, async_op=True), flat)]
    for work, _ in sending:
        work.wait()
    return grad_y, found
