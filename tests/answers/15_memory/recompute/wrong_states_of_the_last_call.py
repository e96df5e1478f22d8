"""States lie in a global: those of the micro-batch that went forward last."""

STATES = {}


def recompute_forward(layer, x, generators):
    STATES["before"] = [generator.get_state() for generator in generators]
    return layer.forward(x)[0], x


def recompute_backward(layer, grad_y, saved, generators):
    now = [generator.get_state() for generator in generators]
    for generator, state in zip(generators, STATES["before"]):
        generator.set_state(state)
    again = layer.forward(saved)[1]
    for generator, state in zip(generators, now):
        generator.set_state(state)
    return layer.backward(grad_y, again)
