"""Dispatch in two levels: a token crosses the link between hosts once, whatever it wants there.

Flat, a token with three experts on another host is sent there three times. Here it is sent once
to *one* rank of that host, which hands it on to its three experts inside the host, adds up what
they make, and returns one row:

    across   x, and its weights, to the rank with my number on each host where it has an expert
    within   a host is a small expert-parallel world: byhand.expert_parallel.Experts
    across   one row back from each of those hosts; they add up to y

So a whole host is to the outer level what an expert is to the inner one, and both use the same
four functions of dispatch.py.

T tokens, D features, k experts a token, H hosts.
Simplified: nothing is dropped, and an expert's copies share a host.
Source: DeepSeek-V3, arXiv:2412.19437, section 3.2.2 (there a token visits at most 4 hosts).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.dispatch import dispatch, dispatch_backward, there
from byhand.expert_parallel.layer import Experts, Weights
from byhand.expert_parallel.placement import in_order
from byhand.expert_parallel.plan import Placement, make_plan
from byhand.model.layer import Holder
from byhand.model.mlp import GELU

Group = dist.ProcessGroup | None


class HostExperts(Holder):
    """Experts spread over ranks of several hosts, as `Experts` has them; equal to it in values."""

    def __init__(
        self,
        weights: Weights,
        activation: Any = GELU,
        within: Group = None,
        across: Group = None,
        placement: Placement | None = None,
    ):
        """Keep this rank's experts.

        within: the ranks of this host. across: the ranks with this rank's number in its host, one
        a host, in the hosts' order. placement: of all ranks, host by host; by default in order.

        Raises:
            ValueError: an expert is on two hosts, or on none.
        """
        per_host, self.num_hosts = dist.get_world_size(within), dist.get_world_size(across)
        placement = placement or in_order(len(weights), per_host * self.num_hosts)
        by_host = [placement[at : at + per_host] for at in range(0, len(placement), per_host)]
        homes = [sorted(set().union(*held)) for held in by_host]
        if sorted(itertools.chain(*homes)) != list(range(len(weights))):
            raise ValueError(f"each of {len(weights)} experts needs one host: they have {homes}")
        self.host_of, self.local = _numbered(homes, weights[0][0][0].device)
        host = dist.get_rank(across)
        inner = [[homes[host].index(expert) for expert in held] for held in by_host[host]]
        self.across = across
        self.inner = Experts([weights[e] for e in homes[host]], activation, within, inner)
        self.layers = [self.inner]

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> tuple[Tensor, tuple]:
        """x [T, D], weights and chosen [T, k], of this rank's tokens -> y [T, D].

        Sends over `across` D + 2k numbers and back D for each token and other host it wants.
        """
        hosts = self.host_of[chosen]  # [T, k]
        every = torch.arange(self.num_hosts, device=x.device)
        wanted = (hosts[:, :, None] == every).any(dim=1)  # [T, H]
        plan = make_plan(every.where(wanted, -1), [[host] for host in every.tolist()], self.across)
        target = plan.assignments.div(max(len(x), 1), rounding_mode="floor")[:, None]
        here = hosts[plan.tokens] == target  # of the token's k experts, those on that host
        numbers = there(self.local[chosen[plan.tokens]].where(here, -1), plan)
        rows, gates = dispatch(torch.cat([x, weights], 1), plan).split(
            [x.shape[1], len(chosen.T)], 1
        )
        y, saved = self.inner.forward(rows, gates, numbers)
        return dispatch_backward(y, plan), (plan, saved)  # rows back, a token's added up

    def backward_input(self, grad_y: Tensor, saved: tuple) -> tuple[tuple[Tensor, Tensor], list]:
        """grad_y [T, D] -> (grad_x [T, D], grad_weights [T, k]). Sends as forward does."""
        plan, inner = saved
        grads, kept = self.inner.backward_input(dispatch(grad_y, plan), inner)
        both = dispatch_backward(torch.cat(grads, dim=1), plan)
        return both.tensor_split([grad_y.shape[1]], dim=1), kept

    def backward_weight(self, kept: list) -> None:
        """Add to the gradients of this rank's experts."""
        self.inner.backward_weight(kept)


def _numbered(homes: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """For each expert: its host, and its number within the host."""
    places = {e: (h, i) for h, home in enumerate(homes) for i, e in enumerate(home)}
    return torch.tensor([places[e] for e in sorted(places)], device=device).unbind(dim=1)
