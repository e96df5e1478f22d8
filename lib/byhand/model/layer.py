"""What every layer with an explicit backward pass has, whatever it computes.

    forward(x)                    -> y, saved       `saved`: what backward will need of this call
    backward(grad_y, saved)       -> grad_x         adds to the layer's gradients: both halves
    backward_input(grad_y, saved) -> grad_x, kept   the half that the layer before waits for
    backward_weight(kept)                           the half that nobody waits for
    backward_first(grad_y, saved)                   as backward, where nobody needs grad_x

Nothing of a call is kept on a layer: any number of micro-batches can be in flight.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

# How a parameter lies over tensor-parallel ranks: see byhand.hybrid_parallel.gradients.
SHARDED, REPLICATED, PARTIAL, TIED = "sharded", "replicated", "partial", "tied"


class Layer:
    """A layer writes forward and backward_input; with parameters, backward_weight too.

    holds: its own parameters, as {name: placement}; the gradient of `name` is `grad_name`.
    layers: the layers inside it.
    """

    holds: Mapping[str, str] = {}
    layers: Sequence["Layer"] = ()

    def backward(self, grad_y: Tensor, saved: Any) -> Tensor:
        grad_x, kept = self.backward_input(grad_y, saved)
        self.backward_weight(kept)
        return grad_x

    def backward_first(self, grad_y: Tensor, saved: Any) -> None:
        self.backward(grad_y, saved)

    def backward_weight(self, kept: Any) -> None:
        pass

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
        """From now on keep the gradients in the next of these tensors: pieces of a bucket, say."""
        self._keep("grad_", iter(tensors))

    def keep_parameters_in(self, tensors: Iterable[Tensor]) -> None:
        """The same for the parameters. What they held is not copied."""
        self._keep("", iter(tensors))

    def _keep(self, prefix: str, pieces: Iterator[Tensor]) -> None:
        for name in self.holds:
            setattr(self, prefix + name, next(pieces))
        for layer in self.layers:
            layer._keep(prefix, pieces)
