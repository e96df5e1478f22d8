"""Forward runs the layer twice and keeps the second's: backward runs nothing again."""


def recompute_forward(layer, x, generators):
    before = [generator.get_state() for generator in generators]
    layer.forward(x)
    for generator, state in zip(generators, before):
        generator.set_state(state)
    return layer.forward(x)


def recompute_backward(layer, grad_y, saved, generators):
    return layer.backward(grad_y, saved)
