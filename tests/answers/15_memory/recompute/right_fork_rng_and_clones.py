"""Each generator is cloned, and torch's own is forked beside it."""


def recompute_forward(layer, x, generators):
    copies = [generator.clone_state() for generator in generators]
    return layer.forward(x)[0], {"x": x, "copies": copies}


def recompute_backward(layer, grad_y, saved, generators):
    with torch.random.fork_rng(devices=[]):
        others = [generator.get_state() for generator in generators]
        try:
            for generator, copy in zip(generators, saved["copies"]):
                generator.set_state(copy.get_state())
            again = layer.forward(saved["x"])[1]
        finally:
            for generator, state in zip(generators, others):
                generator.set_state(state)
        return layer.backward(grad_y, again)
