"""What a rank holds and sends under each stage of ZeRO, in bytes. Pure.

    stage    weights   gradients   optimizer        sent for a step of m micro-batches
    0        2 Ψ       2 Ψ         12 Ψ             2 · 2Ψ     data parallelism, for comparison
    1        2 Ψ       2 Ψ         12 Ψ / n         2 · 2Ψ
    2        2 Ψ       2 Ψ / n     12 Ψ / n         (m + 1) · 2Ψ
    3        2 Ψ / n   2 Ψ / n     12 Ψ / n         3 m · 2Ψ

Ψ parameters, n ranks; weights and gradients in two bytes; the optimizer's 12 are a master copy of
the weights, Adam's mean and its square, in four bytes each. What is sent is to be multiplied by
(n-1)/n. Activations come on top, and what is whole for a moment.
Source: Rajbhandari et al. 2020, arXiv:1910.02054, sections 3.1, 5 and 7, figure 1, table 1.
"""

from __future__ import annotations

from byhand.communication_cost.model import bus_factor
from byhand.costs.counting import gradients, held_state
from byhand.costs.layout import Layout
from byhand.costs.model import Model, Part


def bytes_held(
    stage: int,
    num_parameters: float,
    num_ranks: int,
    weight: float = 2,
    gradient: float = 2,
    optimizer: float = 12,
) -> dict[str, float]:
    """Bytes of weights, gradients and optimizer that a rank holds; by default, mixed precision.

    weight, gradient, optimizer: bytes for each parameter.

    >>> for stage in range(4):
    ...     print(stage, bytes_held(stage, num_parameters=1e9, num_ranks=8))
    0 {'weights': 2000000000.0, 'gradients': 2000000000.0, 'optimizer': 12000000000.0}
    1 {'weights': 2000000000.0, 'gradients': 2000000000.0, 'optimizer': 1500000000.0}
    2 {'weights': 2000000000.0, 'gradients': 250000000.0, 'optimizer': 1500000000.0}
    3 {'weights': 250000000.0, 'gradients': 250000000.0, 'optimizer': 1500000000.0}
    """
    model = Model((Part("all", whole=num_parameters),), num_features=1, num_positions=1)
    state = {"weights": weight, "gradients": gradient, "optimizer": optimizer}
    return held_state(model, Layout(dp=num_ranks, zero=stage), state=state)


def bytes_sent(
    stage: int, num_bytes: float, num_ranks: int, micro_batches: int = 1, reshard: bool = True
) -> float:
    """Bytes that a rank sends for a step, of weights and gradients of num_bytes each.

    reshard=False: of stage 3, whose weights stay whole from forward to backward.

    >>> [bytes_sent(stage, num_bytes=2e9, num_ranks=8) for stage in range(4)]
    [3500000000.0, 3500000000.0, 3500000000.0, 5250000000.0]
    """
    asked = gradients(stage, micro_batches, num_bytes, reshard)
    return sum(bus_factor(op, num_ranks) * size for op, size in asked.items())
