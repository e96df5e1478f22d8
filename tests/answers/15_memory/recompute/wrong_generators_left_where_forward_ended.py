"""Generators are put where forward left them, whoever drew from them meanwhile."""


def recompute_forward(layer, x, generators):
    before = [generator.get_state() for generator in generators]
    y, _ = layer.forward(x)
    return y, (x, before, [generator.get_state() for generator in generators])


def recompute_backward(layer, grad_y, saved, generators):
    x, before, after = saved
    for generator, state in zip(generators, before):
        generator.set_state(state)
    again = layer.forward(x)[1]
    for generator, state in zip(generators, after):
        generator.set_state(state)
    return layer.backward(grad_y, again)
