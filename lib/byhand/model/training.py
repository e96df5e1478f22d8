"""Training on one device: what every parallel way to train is held against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from byhand.model.layer import Layer


def train_alone(
    model: Layer,
    optimizer: Any,
    batches: Iterable[tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    max_norm: float = math.inf,
) -> list[float]:
    """The loss of every step, one for each (x, targets), whose gradients are clipped to max_norm.

    loss(y, targets) -> (the mean loss, grad_y), as byhand.mlp's.
    """
    losses = []
    for x, targets in batches:
        model.zero_gradients()
        y, saved = model.forward(x)
        value, grad_y = loss(y, targets)
        model.backward_first(grad_y, saved)
        norm = torch.stack([g.double().square().sum() for g in model.gradients()]).sum().sqrt()
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        optimizer.step([gradient.mul_(scale) for gradient in model.gradients()])
        losses.append(float(value))
    return losses
