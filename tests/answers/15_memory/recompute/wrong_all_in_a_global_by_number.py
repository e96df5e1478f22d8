"""All lies in a global by a running number: what never comes back is held for ever."""

PENDING = {}


def recompute_forward(layer, x, generators):
    number = max(PENDING, default=0) + 1
    PENDING[number] = x, [generator.get_state() for generator in generators]
    y, _ = layer.forward(x)
    return y, number


def recompute_backward(layer, grad_y, saved, generators):
    x, states = PENDING.pop(saved)
    now = [generator.get_state() for generator in generators]
    for generator, state in zip(generators, states):
        generator.set_state(state)
    _, again = layer.forward(x)
    for generator, state in zip(generators, now):
        generator.set_state(state)
    return layer.backward(grad_y, again)
