"""SGD, momentum and AdamW, written out. Each works on a list of parameters and its gradients.

An optimizer holds its state per parameter, in the parameters' order, so a rank that keeps a shard
of the parameters keeps that shard's state and nothing else. Both lists may be empty, on a rank that
has no shard.
Sources: Sutskever et al. 2013 (momentum, in torch's form); Loshchilov and Hutter 2019,
arXiv:1711.05101, algorithm 2 (AdamW).
"""

from __future__ import annotations

import torch
from torch import Tensor


class SGD:
    """w -= lr · v, with v = momentum · v + g."""

    def __init__(self, parameters: list[Tensor], lr: float, momentum: float = 0.0):
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        self.velocity = [torch.zeros_like(p) for p in parameters] if momentum else []

    def step(self, gradients: list[Tensor]) -> None:
        """Change the parameters in place. Sends nothing."""
        if self.momentum:
            for velocity, gradient in zip(self.velocity, gradients, strict=True):
                velocity.mul_(self.momentum).add_(gradient)
            gradients = self.velocity
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.add_(gradient, alpha=-self.lr)


class AdamW:
    """Adam with weight decay apart from the gradient."""

    def __init__(
        self,
        parameters: list[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ):
        self.parameters, self.lr, self.betas = parameters, lr, betas
        self.eps, self.weight_decay = eps, weight_decay
        self.steps = 0
        self.mean = [torch.zeros_like(p) for p in parameters]  # of the gradients
        self.square = [torch.zeros_like(p) for p in parameters]  # of the gradients squared

    def step(self, gradients: list[Tensor]) -> None:
        """Change the parameters in place. Sends nothing."""
        self.steps += 1
        beta1, beta2 = self.betas
        mean_scale = 1 / (1 - beta1**self.steps)
        square_scale = 1 / (1 - beta2**self.steps)
        for p, g, m, s in zip(self.parameters, gradients, self.mean, self.square, strict=True):
            m.lerp_(g, 1 - beta1)
            s.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.mul_(1 - self.lr * self.weight_decay)
            p.addcdiv_(m, (s * square_scale).sqrt_().add_(self.eps), value=-self.lr * mean_scale)
