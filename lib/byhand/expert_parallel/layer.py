"""A mixture of experts in a transformer's MLP's place: on one device, and over ranks.

    MixtureOfExperts     router, experts, and maybe a shared expert that every token visits
    LocalExperts         all experts on this rank: the one-device twin, nothing is sent
    Experts              each rank holds some: two all-to-alls forward, two backward
    ExpertParallelMLP    the mixture of router and `Experts`, built from full weights

Each rank has its own tokens. An expert sees the tokens of all ranks, so its gradient is complete
when backward is through, and must *not* be summed over `group`; router and shared expert are
replicated, and theirs must be: `dense` has them apart. Losses are means over the global
batch, as everywhere in this course.

T tokens of this rank (x [B, S, D] has T = B·S), D features, E experts, k experts a token.
Simplified: experts compute one after the other (a GPU's grouped product takes them all at once);
the shared expert does not hide the all-to-all, as it could.
Source: Lepikhin et al. 2020, arXiv:2006.16668; Dai et al. 2024, arXiv:2401.06066 (shared experts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.dispatch import combine, combine_backward, dispatch, dispatch_backward
from byhand.expert_parallel.exchange import Exchange, capacity, make_exchange
from byhand.expert_parallel.placement import Placement, in_order
from byhand.expert_parallel.router import Router
from byhand.model.layer import Holder, Layer
from byhand.model.mlp import GELU, MLP
from byhand.tensor_parallel import TensorParallelMLP
from byhand.words import counted

Group = dist.ProcessGroup | None
Weights = Sequence[Sequence[tuple[Tensor, Tensor]]]  # of each expert: (weight, bias) pairs


class OfEach(NamedTuple):
    """What the three of a mixture save in forward, or keep of backward_input."""

    router: Any
    experts: Any
    shared: Any


class MixtureOfExperts(Layer):
    """y = Σ_j w_j · expert_{e_j}(x) over a token's k experts, + shared(x)."""

    def __init__(self, router: Router, experts: Any, shared: Layer | None = None):
        """experts: LocalExperts, Experts, or byhand.expert_parallel.HostExperts."""
        self.router, self.experts, self.shared = router, experts, shared
        self.layers = [router, experts, *([shared] if shared else [])]

    def forward(self, x: Tensor) -> tuple[Tensor, OfEach]:
        """x [..., D] -> y [..., D]. Sends what router and experts send."""
        flat = x.flatten(0, -2)
        (weights, chosen), routed = self.router.forward(flat)
        y, saved = self.experts.forward(flat, weights, chosen)
        shared = None
        if self.shared:
            more, shared = self.shared.forward(flat)
            y = y + more
        return y.view(x.shape), OfEach(routed, saved, shared)

    def backward_input(self, grad_y: Tensor, saved: OfEach) -> tuple[Tensor, OfEach]:
        """grad_y [..., D] -> grad_x [..., D]: through the experts, the router, the shared one."""
        flat, shared = grad_y.flatten(0, -2), None
        (grad_x, grad_weights), experts = self.experts.backward_input(flat, saved.experts)
        more, router = self.router.backward_input(grad_weights, saved.router)
        grad_x = grad_x + more
        if self.shared:
            more, shared = self.shared.backward_input(flat, saved.shared)
            grad_x = grad_x + more
        return grad_x.view(grad_y.shape), OfEach(router, experts, shared)

    def backward_weight(self, kept: OfEach) -> None:
        """Add to all gradients."""
        self.router.backward_weight(kept.router)
        self.experts.backward_weight(kept.experts)
        if self.shared:
            self.shared.backward_weight(kept.shared)


class LocalExperts(Holder):
    """All experts on this rank: each takes its tokens out of x, and adds what it makes to y."""

    layers: list[Layer]

    def __init__(self, weights: Weights, activation: Any = GELU):
        self.layers = [MLP.from_weights(pairs, activation) for pairs in weights]

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> tuple[Tensor, tuple]:
        """x [T, D], weights and chosen [T, k] -> y [T, D]."""
        y, visits = torch.zeros_like(x), []
        for number, expert in enumerate(self.layers):
            tokens, choices = torch.where(chosen == number)
            made, saved = expert.forward(x[tokens])
            y.index_add_(0, tokens, weights[tokens, choices, None] * made)
            visits.append((tokens, choices, made, saved))
        return y, (weights, visits)

    def backward_input(self, grad_y: Tensor, saved: tuple) -> tuple[tuple[Tensor, Tensor], list]:
        """grad_y [T, D] -> (grad_x [T, D], grad_weights [T, k])."""
        weights, visits = saved
        grad_x, grad_weights, kept = torch.zeros_like(grad_y), torch.zeros_like(weights), []
        for expert, (tokens, choices, made, inner) in zip(self.layers, visits, strict=True):
            grad_made = grad_y[tokens]
            grad_weights[tokens, choices] = (grad_made * made).sum(dim=1)
            grad_made = weights[tokens, choices, None] * grad_made
            grad_rows, item = expert.backward_input(grad_made, inner)
            grad_x.index_add_(0, tokens, grad_rows)
            kept.append(item)
        return (grad_x, grad_weights), kept

    def backward_weight(self, kept: list) -> None:
        """Add to every expert's gradients."""
        for expert, item in zip(self.layers, kept, strict=True):
            expert.backward_weight(item)


class Visit(NamedTuple):
    """What `Experts` saves: the exchange, weights [T, k], the rows that came back, experts' own."""

    exchange: Exchange
    weights: Tensor
    returned: Tensor
    saved: list


class Experts(Holder):
    """This rank's experts, to which the tokens of all ranks of `group` travel."""

    layers: list[Layer]

    def __init__(
        self,
        weights: Weights,
        activation: Any = GELU,
        group: Group = None,
        placement: Placement | None = None,
        capacity_factor: float | None = None,
        tp: Group = None,
    ):
        """Keep those of the E experts that the placement gives this rank: by default in order.

        capacity_factor: times an even share, what an expert takes of a rank; None drops nothing.
        tp: ranks that hold a share of the *same* experts, split as TensorParallelMLP splits; x is
        replicated over them, and each talks to its own `group`.

        Raises:
            ValueError: an expert is on no rank, or the placement is one of more or fewer ranks.
        """
        self.num_experts, self.group, self.capacity_factor = len(weights), group, capacity_factor
        self.placement = placement or in_order(len(weights), dist.get_world_size(group))
        self.check(self.placement)
        self.activation, self.tp = activation, tp
        first = [tensor for pairs in weights[:1] for pair in pairs for tensor in pair]
        self.shapes = [tensor.shape for tensor in first]
        self.like = first[0].new_empty(0) if first else torch.empty(0)  # of their dtype, and there
        own = self.placement[dist.get_rank(group)]
        self.layers = [self.build(weights[number]) for number in own]

    def build(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> Layer:
        """An expert of full (weight, bias) pairs; its shard, where experts are split."""
        if self.tp:
            return TensorParallelMLP(pairs, self.activation, self.tp)
        return MLP.from_weights(pairs, self.activation)

    def check(self, placement: Placement) -> None:
        """Refuse a placement on other ranks than the group's, or that leaves an expert out."""
        if len(placement) != (num_ranks := dist.get_world_size(self.group)):
            raise ValueError(
                f"a placement on {counted(len(placement), 'rank')}, in a group of {num_ranks}: it "
                "has a list of experts for each rank, which may be empty"
            )
        if missing := set(range(self.num_experts)).difference(*placement):
            raise ValueError(
                f"no rank holds the experts {sorted(missing)} of {self.num_experts}: the placement "
                f"is {[list(numbers) for numbers in placement]}"
            )

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> tuple[Tensor, Visit]:
        """x [T, D], weights and chosen [T, k], of this rank's tokens -> y [T, D].

        Sends each row for an expert elsewhere, and returns those that came: 2 all-to-alls, and
        the small one of make_exchange. -1 in chosen goes nowhere.
        """
        limit = self.capacity_factor
        if limit is not None:
            limit = capacity(len(chosen), chosen.shape[1], self.num_experts, limit)
        exchange = make_exchange(chosen, self.placement, self.group, limit)
        rows, saved = self._visit(dispatch(x, exchange), exchange.loads)
        y, returned = combine(rows, weights, exchange)
        return y, Visit(exchange, weights, returned, saved)

    def _visit(self, rows: Tensor, loads: Sequence[int]) -> tuple[Tensor, list]:
        """Each expert computes its rows; one without rows computes none."""
        parts = rows.split(list(loads))
        both = [e.forward(part) for e, part in zip(self.layers, parts, strict=True)]
        return torch.cat([rows[:0], *(made for made, _ in both)]), [saved for _, saved in both]

    def backward_input(self, grad_y: Tensor, saved: Visit) -> tuple[tuple[Tensor, Tensor], list]:
        """grad_y [T, D] -> (grad_x [T, D], grad_weights [T, k]). Sends what forward sends."""
        exchange, weights, returned, inner = saved
        grad_rows, grad_weights = combine_backward(grad_y, weights, returned, exchange)
        parts = zip(self.layers, grad_rows.split(exchange.loads), inner, strict=True)
        both = [expert.backward_input(part, item) for expert, part, item in parts]
        grad_rows = torch.cat([grad_rows[:0], *(grad for grad, _ in both)])
        return (dispatch_backward(grad_rows, exchange), grad_weights), [kept for _, kept in both]

    def backward_weight(self, kept: list) -> None:
        """Add to the gradients of this rank's experts: complete, over all ranks' tokens."""
        for expert, item in zip(self.layers, kept, strict=True):
            expert.backward_weight(item)


class ExpertParallelMLP(MixtureOfExperts):
    """A mixture whose experts are spread over `group`; router and shared expert are replicated."""

    def __init__(self, router: Router, weights: Weights, shared: Layer | None = None, **how: Any):
        """how: `Experts`'s activation, group, placement, capacity_factor, tp.

        Raises:
            ValueError: the router chooses among another number of experts.
        """
        if len(router.weight) != len(weights):
            raise ValueError(
                f"the router chooses among {len(router.weight)} experts, but there are "
                f"{len(weights)}: its weight has a row for each"
            )
        super().__init__(router, Experts(weights, **how), shared)


def experts_in(layer: Holder) -> list[Experts]:
    """The experts that are spread over ranks, anywhere inside."""
    if isinstance(layer, Experts):
        return [layer]
    return [experts for inner in layer.layers for experts in experts_in(inner)]


def dense(layer: Holder) -> tuple[list[Tensor], list[Tensor]]:
    """Parameters and gradients of all else: replicated, and partial until they are summed."""
    if isinstance(layer, Experts):
        return [], []
    parameters, gradients = (
        [getattr(layer, prefix + name) for name in layer.holds] for prefix in ("", "grad_")
    )
    for part in layer.layers:
        inner = dense(part)
        parameters, gradients = parameters + inner[0], gradients + inner[1]
    return parameters, gradients
