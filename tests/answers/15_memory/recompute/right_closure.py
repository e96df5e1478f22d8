"""What backward needs is a function that forward made."""

from contextlib import contextmanager


@contextmanager
def standing(generators, states):
    now = [generator.get_state() for generator in generators]
    for generator, state in zip(generators, states):
        generator.set_state(state)
    yield
    for generator, state in zip(generators, now):
        generator.set_state(state)


def recompute_forward(layer, x, generators):
    states = tuple(map(torch.Generator.get_state, generators))

    def again():
        with standing(generators, states):
            return layer.forward(x)[1]

    return layer.forward(x)[0], again


def recompute_backward(layer, grad_y, saved, generators):
    return layer.backward(grad_y, saved())
