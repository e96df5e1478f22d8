"""What every layer with an explicit backward pass has, whatever it computes.

    forward(x)                    -> y, saved       `saved`: what backward will need of this call
    backward(grad_y, saved)       -> grad_x         adds to the layer's gradients: both halves
    backward_input(grad_y, saved) -> grad_x, kept   the half that the layer before waits for
    backward_weight(kept)                           the half that nobody waits for
    backward_first(grad_y, saved)                   as backward, where nobody needs grad_x

Nothing of a call is kept on a layer: any number of micro-batches can be in flight.

    Holder   has parameters and their gradients, its own and those of what is inside it
    Layer    a Holder that makes one y of one x, and of grad_y grad_x
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

# How a parameter lies over tensor-parallel ranks: see byhand.hybrid_parallel.gradients.
SHARDED, REPLICATED, PARTIAL, TIED = "sharded", "replicated", "partial", "tied"


class Holder:
    """What has parameters: a layer, or a part of one, such as a router.

    holds: its own parameters, as {name: placement}; the gradient of `name` is `grad_name`.
    layers: the holders inside it.
    """

    holds: Mapping[str, str] = {}
    layers: Sequence[Holder] = ()

    def parameters(self) -> list[Tensor]:
        """Its own, then those of the layers inside; gradients and placements in that order."""
        own = [getattr(self, name) for name in self.holds]
        return own + [tensor for layer in self.layers for tensor in layer.parameters()]

    def gradients(self) -> list[Tensor]:
        own = [getattr(self, f"grad_{name}") for name in self.holds]
        return own + [tensor for layer in self.layers for tensor in layer.gradients()]

    @property
    def placements(self) -> list[str]:
        return [*self.holds.values(), *(how for layer in self.layers for how in layer.placements)]

    def zero_gradients(self) -> None:
        for gradient in self.gradients():
            gradient.zero_()

    def keep_gradients_in(self, tensors: Iterable[Tensor]) -> None:
        """From now on keep the gradients in the next of these tensors: views of a bucket, say."""
        self._keep("grad_", iter(tensors))

    def keep_parameters_in(self, tensors: Iterable[Tensor]) -> None:
        """The same for the parameters. What they held is not copied."""
        self._keep("", iter(tensors))

    def _keep(self, prefix: str, tensors: Iterator[Tensor]) -> None:
        for name in self.holds:
            setattr(self, prefix + name, next(tensors))
        for layer in self.layers:
            layer._keep(prefix, tensors)


class Layer(Holder):
    """y of x: it writes forward and backward_input; with parameters, backward_weight too."""

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def backward_input(self, grad_y: Tensor, saved: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def backward_weight(self, kept: Any) -> None:
        pass

    def backward(self, grad_y: Tensor, saved: Any) -> Tensor:
        grad_x, kept = self.backward_input(grad_y, saved)
        self.backward_weight(kept)
        return grad_x

    def backward_first(self, grad_y: Tensor, saved: Any) -> None:
        self.backward(grad_y, saved)
