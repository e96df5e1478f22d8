"""Tokens travel to their experts and back: an uneven all-to-all each way, forward and backward.

    rows = dispatch(x, plan)              tokens to their experts: [T, D] -> [R, D], by expert
    y, returned = combine(out, w, plan)   rows back to their tokens, each token's k added up

A token that goes to k experts leaves k times. The backward pass of a way there is the way back:

    forward    there (x)        back (what the experts made)
    backward   back (grad_rows) there (w · grad_y)

So a step moves every row four times, and pads nothing: a rank sends each other one exactly the
rows for its experts, none where there are none. How many those are the receiver cannot know:
`make_plan` tells it first. Splits that do not fit are an abort, or silently wrong rows.

T tokens of this rank, D features, k experts a token, A assignments that leave (T·k less what is
dropped), R rows that arrive, E experts, n ranks in `group` (None: all of them).
Simplified: `make_plan` needs its numbers on the host, for which a GPU would stand still.
Source: Gale et al. 2022, arXiv:2211.15841 (no padding); Lepikhin et al. 2020, arXiv:2006.16668.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

Group = dist.ProcessGroup | None
Placement = Sequence[Sequence[int]]  # for each rank, the experts that it holds


@dataclass(frozen=True)
class Plan:
    """Who sends which rows to whom, for one forward and its backward.

    assignments [A]: those that leave, ordered by where they go; number j·T + t is choice j of
    token t. order [R]: the rows as they arrive, taken by expert. loads: rows of each expert here.
    """

    assignments: Tensor
    tokens: Tensor  # [A], the token of each
    sends: list[int]  # rows to each rank
    receives: list[int]  # rows from each rank
    order: Tensor
    loads: list[int]
    num_tokens: int
    num_dropped: int  # assignments beyond the capacity
    group: Group


def make_plan(
    chosen: Tensor, placement: Placement, group: Group = None, capacity: int | None = None
) -> Plan:
    """The plan of tokens whose experts are chosen [T, k]; -1 in it goes nowhere.

    placement: a list of experts for each rank; an expert on several ranks has its tokens take
    turns. capacity: the most rows of this rank for each copy of an expert; second choices are
    dropped before first ones, later tokens before earlier ones.

    Sends the number of rows of each expert: one all-to-all of 8 bytes an expert, and placed copy.

    Raises:
        ValueError: an expert that is chosen is on no rank, or the placement is for other ranks.
    """
    counts = [len(experts) for experts in placement]
    flat = chosen.T.flatten()  # first choices first
    tokens = torch.arange(len(flat), device=flat.device) % max(len(chosen), 1)
    slots = _slots(flat, tokens, placement, dist.get_world_size(group))
    order = slots.argsort(stable=True)
    sent = torch.bincount(slots, minlength=sum(counts) + 1)
    places = torch.arange(len(flat), device=flat.device) - (sent.cumsum(0) - sent)[slots[order]]
    sent = sent[:-1]  # the last slot is nowhere
    leaves = slots[order] < len(sent)
    if capacity is not None:
        sent, leaves = sent.clamp(max=capacity), leaves & (places < capacity)
    assignments = order[leaves]
    received = _exchange_counts(sent, counts, group)  # [n, experts here]
    arriving = torch.arange(received.shape[1], device=flat.device).repeat(len(received))
    by_expert = arriving.repeat_interleave(received.flatten()).argsort(stable=True)
    sends = [int(part.sum()) for part in sent.split(counts)]
    receives, loads = received.sum(dim=1).tolist(), received.sum(dim=0).tolist()
    counted = len(chosen), int((flat >= 0).sum()) - len(assignments)
    return Plan(
        assignments, tokens[assignments], sends, receives, by_expert, loads, *counted, group
    )


def dispatch(x: Tensor, plan: Plan) -> Tensor:
    """x [T, D], this rank's tokens -> rows [R, D], of this rank's experts, one after the other.

    Sends the rows of experts elsewhere: one all-to-all.
    """
    return there(x[plan.tokens], plan)


def dispatch_backward(grad_rows: Tensor, plan: Plan) -> Tensor:
    """grad_rows [R, D] -> grad_x [T, D]: a token's k rows each have a term of its gradient."""
    grad_x = grad_rows.new_zeros(plan.num_tokens, grad_rows.shape[1])
    return grad_x.index_add_(0, plan.tokens, back(grad_rows, plan))


def combine(rows: Tensor, weights: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    """rows [R, D] of the experts, weights [T, k] -> y [T, D] = Σ_j weights[:, j] · row.

    Saves the rows that came back, [A, D]. A token of which every row was dropped has y = 0.
    """
    returned = back(rows, plan)
    y = rows.new_zeros(plan.num_tokens, rows.shape[1])
    return y.index_add_(0, plan.tokens, _flat(weights, plan) * returned), returned


def combine_backward(
    grad_y: Tensor, weights: Tensor, returned: Tensor, plan: Plan
) -> tuple[Tensor, Tensor]:
    """grad_y [T, D] -> grad_rows [R, D], with the experts, and grad_weights [T, k], here."""
    grad_returned = grad_y[plan.tokens]
    grad_weights = weights.new_zeros(weights.numel())
    grad_weights[plan.assignments] = (grad_returned * returned).sum(dim=1)
    grad_rows = there(_flat(weights, plan) * grad_returned, plan)
    return grad_rows, grad_weights.view(weights.shape[1], -1).T


def there(rows: Tensor, plan: Plan) -> Tensor:
    """rows [A, ...] as they leave -> [R, ...] with their experts."""
    arrived = rows.new_empty(sum(plan.receives), *rows.shape[1:])
    dist.all_to_all_single(arrived, rows, plan.receives, plan.sends, group=plan.group)
    return arrived[plan.order]


def back(rows: Tensor, plan: Plan) -> Tensor:
    """rows [R, ...] with their experts -> [A, ...] as they left: the same splits, exchanged."""
    leaving = torch.empty_like(rows)
    leaving[plan.order] = rows
    returned = rows.new_empty(sum(plan.sends), *rows.shape[1:])
    dist.all_to_all_single(returned, leaving, plan.sends, plan.receives, group=plan.group)
    return returned


def capacity(num_tokens: int, top_k: int, num_experts: int, factor: float) -> int:
    """The rows that an expert takes of a rank: `factor` times its even share, rounded up."""
    return math.ceil(factor * num_tokens * top_k / num_experts)


def _flat(weights: Tensor, plan: Plan) -> Tensor:
    """weights [T, k] -> [A, 1], in the order in which rows leave."""
    return weights.T.flatten()[plan.assignments][:, None]


def _slots(flat: Tensor, tokens: Tensor, placement: Placement, num_ranks: int) -> Tensor:
    """The slot of each assignment: places for experts are numbered from rank to rank."""
    if len(placement) != num_ranks:
        raise ValueError(f"a placement on {len(placement)} ranks, in a group of {num_ranks}")
    copies: dict[int, list[int]] = {}
    for slot, expert in enumerate(expert for experts in placement for expert in experts):
        copies.setdefault(expert, []).append(slot)
    most = max(map(len, copies.values()))
    table = flat.new_full((max(copies) + 1, most), -1)
    for expert, slots in copies.items():
        table[expert, : len(slots)] = flat.new_tensor(slots)
    known = flat < len(table)
    number = (table >= 0).sum(dim=1).clamp(min=1)
    slots = table[flat * known, tokens % number[flat * known]]
    if bool(((slots < 0) | ~known)[flat >= 0].any()):
        raise ValueError(
            f"tokens go to expert {int(flat[(slots < 0) | ~known].max())}, which is "
            f"on no rank: the placement is {[list(e) for e in placement]}"
        )
    return slots.where(flat >= 0, sum(map(len, placement)))


def _exchange_counts(sent: Tensor, counts: Sequence[int], group: Group) -> Tensor:
    """The rows for each slot -> [n, slots here]: the rows that each rank has for mine."""
    mine, n = counts[dist.get_rank(group)], len(counts)
    received = sent.new_empty(n * mine)
    dist.all_to_all_single(received, sent, [mine] * n, list(counts), group=group)
    return received.view(n, mine)
