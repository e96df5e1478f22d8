"""Tokens travel to their experts and back: an uneven all-to-all each way, forward and backward.

    rows = dispatch(x, plan)              tokens to their experts: [T, D] -> [R, D], by expert
    y, returned = combine(out, w, plan)   rows back to their tokens, each token's k added up

A token that goes to k experts leaves k times. The backward pass of a way there is the way back:

    forward    there (x)           back (what the experts made of it)
    backward   there (w · grad_y)  back (grad_rows)

So a step moves every row four times, and pads nothing: a rank sends each other one exactly the
rows for its experts, none where there are none. How many come, and in which order they are sorted
here and there, is the *plan*, made once for all four ways: byhand.expert_parallel.plan.

T tokens of this rank, D features, k experts a token, A assignments that leave (T·k less what is
dropped), R rows that arrive.
Source: Gale et al. 2022, arXiv:2211.15841 (no padding); Lepikhin et al. 2020, arXiv:2006.16668.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.plan import Plan


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


def _flat(weights: Tensor, plan: Plan) -> Tensor:
    """weights [T, k] -> [A, 1], in the order in which rows leave."""
    return weights.T.flatten()[plan.assignments][:, None]
