"""States lie in a dictionary by place, and an exit stack puts the generators back."""

from contextlib import ExitStack


def recompute_forward(layer, x, generators):
    kept = {place: g.get_state() for place, g in enumerate(generators)}
    return layer.forward(x)[0], {"x": x, "states": kept}


def recompute_backward(layer, grad_y, saved, generators):
    with ExitStack() as stack:
        for place, state in saved["states"].items():
            stack.callback(generators[place].set_state, generators[place].get_state())
            generators[place].set_state(state)
        again = layer.forward(saved["x"])[1]
    return layer.backward(grad_y, again)
