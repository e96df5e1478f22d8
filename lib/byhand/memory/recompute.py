"""Recomputation: a layer saves its input alone, and backward runs its forward a second time.

    forward    x ──► layer ──► y          saved: x, and where random numbers began
    backward   x ──► layer ──► (y)        again, with the same random numbers
          grad_x ◄── layer ◄── grad_y     as ever, with what the second forward saved

What is wrapped says what is kept: all blocks of a model, whole recomputation; the attention
between two products alone (Parts' heads), selective. Gradients equal the plain layer's to the bit.
It costs a forward more, in time and in what forward sends: its collectives run again, on all ranks,
for they wrap the same layers. Whatever forward counts is counted twice, such as a Router's load.

Parameters must not change between forward and backward; x must not either.
Sources: Chen et al. 2016, arXiv:1604.06174; Korthikanti et al. 2022, arXiv:2205.05198, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from byhand.model.layer import Holder, Layer

States = list[tuple[Generator, Tensor]]  # generators of random numbers, each with a state it had


class Call(NamedTuple):
    """What a second forward needs: x, and the states before, of generators that were drawn from."""

    x: Tensor
    states: States


class Recomputed(Layer):
    """The layer, but for what it saves. A layer like any other, whatever the one inside it is.

    >>> from byhand.mlp import MLP
    >>> pairs = [(torch.ones(9, 4), torch.zeros(9)), (torch.ones(4, 9), torch.zeros(4))]
    >>> layer = MLP.from_weights(pairs)
    >>> y, saved = layer.forward(torch.ones(2, 4))
    >>> again, call = Recomputed(layer).forward(torch.ones(2, 4))
    >>> Recomputed(layer).backward(again, call).equal(layer.backward(y, saved))
    True
    """

    def __init__(self, layer: Layer):
        self.layer, self.layers = layer, [layer]

    def forward(self, x: Tensor) -> tuple[Tensor, Call]:
        """x -> y; saves x, and the state of each generator that was drawn from, as it was before.

        Looked at are those that layers inside hold, torch's own, and its own on x's device. Sends
        what the layer sends.
        """
        before = states(generators(self.layer) + torchs_own(x))
        y, _ = self.layer.forward(x)
        drawn = [(g, state) for g, state in before if not g.get_state().equal(state)]
        return y, Call(x, drawn)

    def again(self, saved: Call) -> Any:
        """What the layer's own forward saved, made a second time. Sends what forward sends."""
        with replayed(saved.states):
            return self.layer.forward(saved.x)[1]

    def backward(self, grad_y: Tensor, saved: Call) -> Tensor:
        """grad_y -> grad_x. Adds to the gradients. Sends what forward and backward send."""
        return self.layer.backward(grad_y, self.again(saved))

    def backward_first(self, grad_y: Tensor, saved: Call) -> None:
        self.layer.backward_first(grad_y, self.again(saved))

    def backward_input(self, grad_y: Tensor, saved: Call) -> tuple[Any, Any]:
        """grad_y -> grad_x; keeps what the layer keeps: forward runs again here alone."""
        return self.layer.backward_input(grad_y, self.again(saved))

    def backward_weight(self, kept: Any) -> None:
        self.layer.backward_weight(kept)


def generators(holder: Holder) -> list[Generator]:
    """Those that it holds, or what is inside it, each once."""
    own = [value for value in vars(holder).values() if isinstance(value, Generator)]
    inner = [generator for layer in holder.layers for generator in generators(layer)]
    return list(dict.fromkeys(own + inner))


def torchs_own(x: Tensor) -> list[Generator]:
    """What a layer draws from that names no generator."""
    on_device = [torch.cuda.default_generators[x.get_device()]] if x.is_cuda else []
    return [torch.default_generator, *on_device]


def states(drawn: list[Generator]) -> States:
    """Where they are now."""
    return [(generator, generator.get_state()) for generator in drawn]


@contextmanager
def replayed(before: States) -> Iterator[None]:
    """The generators begin there once more; afterwards they go on from where they are now."""
    now = states([generator for generator, _ in before])
    try:
        _set(before)
        yield
    finally:
        _set(now)


def _set(wanted: States) -> None:
    for generator, state in wanted:
        # Of a view torch reads another's bytes, and it takes none from a GPU: what was offloaded.
        generator.set_state(state.to("cpu", copy=True))
