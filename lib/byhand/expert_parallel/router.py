"""The router: which k of the E experts a token goes to, and with which weights.

    p = softmax(x Wᵀ)               a probability for each expert
    chosen                          the k experts with the largest p + bias
    weights = p[chosen]             softmax "before" the choice: they add up to less than 1
    weights = softmax of the k      softmax "after" it: they add up to 1

The choice has no gradient; the weights do, and through them alone the router learns. It says
nothing of an expert that was not chosen, so what is popular stays so. Two remedies:

    balance   a loss α E Σ_e f_e P_e of the share f of rows and the mean probability P of each
              expert, with the batch of all ranks counted: its gradient pushes p
    bias      is added for the choice alone, and moved a little against the load after each step:
              no gradient, no loss

Shapes: T tokens, D features, E experts, k experts a token.
Sources: Shazeer et al. 2017, arXiv:1701.06538; Fedus et al. 2021, arXiv:2101.03961, section 2.2
(the loss); Wang et al. 2024, arXiv:2408.15664 (the bias).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.attention import softmax, softmax_backward
from byhand.model.layer import REPLICATED, Holder

Group = dist.ProcessGroup | None
SOFTMAX = ("before", "after")


@dataclass(frozen=True)
class Routed:
    """What backward needs of a forward: x [T, D], p [T, E], weights and chosen [T, k].

    pull: what the balance loss adds to the gradient of every token's p, [E]; None without it.
    """

    x: Tensor
    p: Tensor
    weights: Tensor
    chosen: Tensor
    pull: Tensor | None


class Router(Holder):
    """x [T, D] -> weights [T, k] of the chosen experts [T, k]. Every rank has the same router.

    bias [E] is no parameter; load [E] counts rows, and adds up as gradients do: see `move_bias`.

    >>> router = Router(torch.eye(3), top_k=2)
    >>> (weights, chosen), saved = router.forward(torch.tensor([[0.0, 5.0, 4.0]]))
    >>> chosen, weights
    (tensor([[1, 2]]), tensor([[0.7311, 0.2689]]))
    """

    holds = {"weight": REPLICATED}

    def __init__(
        self,
        weight: Tensor,
        top_k: int,
        softmax: str = "after",
        balance: float = 0.0,
        group: Group = None,
    ):
        """Keep a copy of the weight [E, D].

        balance: the loss's factor α. group: the ranks whose tokens make up the batch.

        Raises:
            ValueError: more experts a token than there are, or `softmax` is neither word.
        """
        if not 1 <= top_k <= len(weight):
            raise ValueError(
                f"a token cannot go to {top_k} of {len(weight)} experts: choose 1 to {len(weight)}"
            )
        if softmax not in SOFTMAX:
            raise ValueError(f'softmax is {softmax!r}: choose "before" or "after"')
        self.weight, self.grad_weight = weight.clone(), torch.zeros_like(weight)
        self.top_k, self.softmax, self.balance, self.group = top_k, softmax, balance, group
        self.wide = torch.promote_types(weight.dtype, torch.float32)  # of the bias
        self.bias = weight.new_zeros(len(weight), dtype=self.wide)
        self.load = torch.zeros(len(weight), dtype=torch.int64, device=weight.device)

    def forward(self, x: Tensor) -> tuple[tuple[Tensor, Tensor], Routed]:
        """x [T, D], this rank's tokens -> (weights [T, k], chosen [T, k]).

        Sends nothing, or with a balance loss 2 (n-1)/n · E numbers of 8 bytes: one all-reduce.
        """
        p = softmax(x @ self.weight.T)
        chosen = (p + self.bias).topk(self.top_k, dim=-1).indices
        weights = p.gather(-1, chosen)
        if self.softmax == "after":
            weights = weights / weights.sum(dim=-1, keepdim=True)
        load = torch.bincount(chosen.flatten(), minlength=len(self.weight))
        self.load += load
        pull = self._pull(load) if self.balance else None
        return (weights, chosen), Routed(x, p, weights, chosen, pull)

    def backward_input(
        self, grad_weights: Tensor, saved: Routed
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """grad_weights [T, k] -> grad_x [T, D], the balance loss's share in it. Sends nothing."""
        if self.softmax == "after":  # the softmax of the chosen scores alone
            grad_chosen = softmax_backward(grad_weights, saved.weights)
            grad_scores = torch.zeros_like(saved.p).scatter_(-1, saved.chosen, grad_chosen)
        else:
            grad_p = torch.zeros_like(saved.p).scatter_(-1, saved.chosen, grad_weights)
            grad_scores = softmax_backward(grad_p, saved.p)
        if saved.pull is not None:
            grad_scores += softmax_backward(saved.pull.expand_as(saved.p), saved.p)
        return grad_scores @ self.weight, (grad_scores, saved.x)

    def backward_weight(self, kept: tuple[Tensor, Tensor]) -> None:
        """Add to grad_weight: partial, this rank's tokens' term of the sum."""
        grad_scores, x = kept
        self.grad_weight.addmm_(grad_scores.T, x)

    def _pull(self, load: Tensor) -> Tensor:
        """α E f / T: the derivative of the balance loss in any token's p, with T and f global."""
        load = _summed(load, self.group).double()
        rows = load.sum().clamp(min=1)  # k T
        return (self.balance * len(load) * (load / rows) * (self.top_k / rows)).to(self.wide)

    def balance_loss(self, saved: Routed) -> Tensor:
        """This rank's share of α E Σ_e f_e P_e: the ranks' shares add up. α when all is even."""
        if saved.pull is None:
            return saved.p.new_zeros(())
        return (saved.p * saved.pull).sum()

    def take_load(self) -> Tensor:
        """The rows of each expert [E], of all ranks, since this was last asked.

        Sends 2 (n-1)/n · E numbers of 8 bytes.
        """
        load = _summed(self.load, self.group)
        self.load.zero_()
        return load

    def move_bias(self, load: Tensor, rate: float = 0.001) -> None:
        """After a step: raise the bias of experts with less than the mean load, lower the others'.

        load: what `take_load` gave, equal on all ranks; so the biases stay equal, too.
        """
        load = load.double()
        self.bias += rate * (load.mean() - load).sign()


def _summed(counts: Tensor, group: Group) -> Tensor:
    total = counts.clone()
    if dist.is_initialized():  # one device alone needs no process group
        dist.all_reduce(total, group=group)
    return total
