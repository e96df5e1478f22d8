"""The seed is taken for where a generator stands: it has drawn since."""


def recompute_forward(layer, x, generators):
    return layer.forward(x)[0], x


def recompute_backward(layer, grad_y, saved, generators):
    now = [generator.get_state() for generator in generators]
    for generator in generators:
        generator.manual_seed(generator.initial_seed())
    again = layer.forward(saved)[1]
    for generator, state in zip(generators, now):
        generator.set_state(state)
    return layer.backward(grad_y, again)
