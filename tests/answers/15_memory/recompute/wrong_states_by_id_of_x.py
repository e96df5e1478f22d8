"""States lie in a global by the id of x: micro-batches that share one x overwrite each other's."""

STATES = {}


def recompute_forward(layer, x, generators):
    STATES[id(x)] = [generator.get_state() for generator in generators]
    y, _ = layer.forward(x)
    return y, x


def recompute_backward(layer, grad_y, saved, generators):
    now = [generator.get_state() for generator in generators]
    for generator, state in zip(generators, STATES.get(id(saved), now)):
        generator.set_state(state)
    _, again = layer.forward(saved)
    for generator, state in zip(generators, now):
        generator.set_state(state)
    return layer.backward(grad_y, again)
