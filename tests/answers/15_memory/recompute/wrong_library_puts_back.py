"""States are the answer's own; the library puts them back, for it has a function for that."""

from byhand.memory.recompute import replayed


def recompute_forward(layer, x, generators):
    before = [(generator, generator.get_state()) for generator in generators]
    return layer.forward(x)[0], (x, before)


def recompute_backward(layer, grad_y, saved, generators):
    x, before = saved
    with replayed(before):
        again = layer.forward(x)[1]
    return layer.backward(grad_y, again)
