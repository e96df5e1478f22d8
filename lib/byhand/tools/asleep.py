"""What labs watch on two cores: layers that sleep, and links as slow as one asks for.

A rank that sleeps takes no core, so any number of ranks computes at full speed on two: what is
measured is the messages and their order, not the ranks' fight for the processor.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from torch import Tensor

from byhand.model.layer import Layer
from byhand.runtime import VirtualNetwork, why_no_network

LINK = 25e6  # bytes a second


def slow_link(world_size: int = 2) -> VirtualNetwork | None:
    """Hosts of one rank each, joined by links of LINK; None where no network can be laid."""
    return None if why_no_network() else VirtualNetwork(world_size, 1, LINK)


@dataclass(eq=False)  # two layers are never one, however alike
class Sleep(Layer):
    """A layer that computes nothing, in the given seconds."""

    forward_seconds: float
    backward_input_seconds: float
    backward_weight_seconds: float = 0.0

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """x -> x."""
        time.sleep(self.forward_seconds)
        return x, None

    def backward_input(self, grad_y: Tensor, saved: None) -> tuple[Tensor, None]:
        """grad_y -> grad_y."""
        time.sleep(self.backward_input_seconds)
        return grad_y, None

    def backward_weight(self, kept: None) -> None:
        """Nothing."""
        time.sleep(self.backward_weight_seconds)
