"""Dispatch in two levels: a token crosses the link between hosts once, whatever it wants there.

Flat, a token with three experts on another host is sent there three times. Here it is sent once
to *one* rank of that host, which hands it on to its three experts inside the host, adds up what
they make, and returns one row:

    across   x, and its weights, to the rank with my number on each host where it has an expert
    within   a host is a small expert-parallel world: byhand.expert_parallel.Experts
    across   one row back from each of those hosts; they add up to y

So a whole host is to the outer level what an expert is to the inner one, and both use the same
functions of dispatch.py. What crosses is a token's row, once for each host that it wants, and
which experts it asks for, by their numbers on that host. An example: experts 0 to 3 on host 0, 4
to 7 on host 1, k = 3, and - for -1, which is none:

                     token 0      token 1
    chosen [T, k]    1  4  6      0  2  3
    their hosts      0  1  1      0  0  0
    wanted [T, H]    0  1         0  -          three rows leave: two to host 0, one to host 1

    row              token 0 to host 0      token 1 to host 0      token 0 to host 1
    asked [A, k]     1  -  -                0  2  3                -  0  2

T tokens, D features, k experts a token, H hosts, A rows that leave this rank, R that arrive.
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
from byhand.expert_parallel.exchange import Exchange, make_exchange
from byhand.expert_parallel.layer import Experts, Weights
from byhand.expert_parallel.placement import Placement, in_order
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
        self.host_of, self.local = _numbered(homes, weights[0][0][0].device)  # [E], [E]
        host = dist.get_rank(across)
        inner = [[homes[host].index(expert) for expert in held] for held in by_host[host]]
        self.across = across
        self.inner = Experts([weights[e] for e in homes[host]], activation, within, inner)
        self.layers = [self.inner]

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> tuple[Tensor, Any]:
        """x [T, D], weights and chosen [T, k], of this rank's tokens -> y [T, D].

        Sends over `across` D + 2k numbers and back D for each token and other host it wants. -1 in
        chosen goes nowhere.
        """
        exchange = self._across(chosen)
        num_features, k = x.shape[1], chosen.shape[1]
        asked_here = there(self._asked(chosen, exchange), exchange)  # [R, k]
        arrived = dispatch(torch.cat([x, weights], dim=1), exchange)
        x_here, weights_here = arrived.split([num_features, k], dim=1)
        y_here, saved = self.inner.forward(x_here, weights_here, asked_here)
        return dispatch_backward(y_here, exchange), (exchange, saved)  # a token's rows added up

    def _across(self, chosen: Tensor) -> Exchange:
        """One row for each token and host that has one of its experts, however many it has."""
        every = torch.arange(self.num_hosts, device=chosen.device)
        has_one = (self._hosts(chosen)[:, :, None] == every).any(dim=1)  # [T, H]
        wanted = every.where(has_one, -1)  # as if hosts were experts, one on each rank of `across`
        return make_exchange(wanted, [[host] for host in range(self.num_hosts)], self.across)

    def _asked(self, chosen: Tensor, exchange: Exchange) -> Tensor:
        """chosen [T, k] -> [A, k]: the experts that each row asks for on its host, else -1."""
        experts = chosen[exchange.tokens]  # wherever they are
        host = exchange.choices[:, None]  # choice h of `wanted` is host h
        return self.local[experts].where(self._hosts(experts) == host, -1)

    def _hosts(self, chosen: Tensor) -> Tensor:
        """The host of each chosen expert; -1 of none, which is -1."""
        return self.host_of[chosen].where(chosen >= 0, -1)

    def backward_input(self, grad_y: Tensor, saved: tuple) -> tuple[tuple[Tensor, Tensor], list]:
        """grad_y [T, D] -> (grad_x [T, D], grad_weights [T, k]). Sends as forward does."""
        exchange, inner = saved
        grads_here, kept = self.inner.backward_input(dispatch(grad_y, exchange), inner)
        grads = dispatch_backward(torch.cat(grads_here, dim=1), exchange)
        grad_x, grad_weights = grads.tensor_split([grad_y.shape[1]], dim=1)
        return (grad_x, grad_weights), kept

    def backward_weight(self, kept: list) -> None:
        """Add to the gradients of this rank's experts."""
        self.inner.backward_weight(kept)


def _numbered(homes: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """For each expert: its host, and its number there. homes: the experts of each host."""
    found = torch.empty(2, sum(map(len, homes)), dtype=torch.int64, device=device)
    for host, home in enumerate(homes):
        found[0, home], found[1, home] = host, torch.arange(len(home), device=device)
    return found[0], found[1]
