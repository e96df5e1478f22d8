"""Tokens travel to their experts and back: an uneven all-to-all each way, forward and backward.

    rows = dispatch(x, exchange)              tokens to their experts: [T, D] -> [R, D], by expert
    y, returned = combine(out, w, exchange)   rows back to their tokens, each token's k added up

A token that goes to k experts leaves k times. The backward pass of a way there is the way back:

    forward    there (x)           back (what the experts made of it)
    backward   there (w · grad_y)  back (grad_rows)

So a step moves every row four times, and pads nothing: a rank sends each other one exactly the
rows for its experts, none where there are none. How many come, and in which order they are sorted
here and there, is the *exchange*, made once for all four ways: byhand.expert_parallel.exchange.

T tokens of this rank, D features, k experts a token, A assignments that leave (T·k less what is
dropped), R rows that arrive.
Source: Gale et al. 2022, arXiv:2211.15841 (no padding); Lepikhin et al. 2020, arXiv:2006.16668.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.exchange import Exchange


def dispatch(x: Tensor, exchange: Exchange) -> Tensor:
    """x [T, D], this rank's tokens -> rows [R, D], of this rank's experts, one after the other.

    Sends the rows of experts elsewhere: one all-to-all.

    >>> def travel(rank, world_size):
    ...     there = make_exchange(torch.tensor([[1], [0]]), placement=[[0], [1]])
    ...     return dispatch(torch.tensor([[10.0 * rank], [10.0 * rank + 1]]), there).tolist()
    >>> launch(travel, 2).results
    [[[1.0], [11.0]], [[0.0], [10.0]]]
    """
    return there(x[exchange.tokens], exchange)


def dispatch_backward(grad_rows: Tensor, exchange: Exchange) -> Tensor:
    """grad_rows [R, D] -> grad_x [T, D]: a token's k rows each have a term of its gradient."""
    grad_x = grad_rows.new_zeros(exchange.num_tokens, grad_rows.shape[1])
    return grad_x.index_add_(0, exchange.tokens, back(grad_rows, exchange))


def combine(rows: Tensor, weights: Tensor, exchange: Exchange) -> tuple[Tensor, Tensor]:
    """rows [R, D] of the experts, weights [T, k] -> y [T, D] = Σ_j weights[:, j] · row.

    Saves the rows that came back, [A, D]. A token of which every row was dropped has y = 0.

    >>> def home(rank, world_size):
    ...     there = make_exchange(torch.tensor([[1], [0]]), placement=[[0], [1]])
    ...     rows = dispatch(torch.ones(2, 1), there)
    ...     return combine(rows * (rank + 1), torch.ones(2, 1), there)[0].tolist()
    >>> launch(home, 2).results
    [[[2.0], [1.0]], [[2.0], [1.0]]]
    """
    returned = back(rows, exchange)
    y = rows.new_zeros(exchange.num_tokens, rows.shape[1])
    y.index_add_(0, exchange.tokens, _weights(weights, exchange) * returned)
    return y, returned


def combine_backward(
    grad_y: Tensor, weights: Tensor, returned: Tensor, exchange: Exchange
) -> tuple[Tensor, Tensor]:
    """grad_y [T, D] -> grad_rows [R, D], with the experts, and grad_weights [T, k], here."""
    grad_returned = grad_y[exchange.tokens]
    grad_weights = torch.zeros_like(weights)
    grad_weights[exchange.tokens, exchange.choices] = (grad_returned * returned).sum(dim=1)
    return there(_weights(weights, exchange) * grad_returned, exchange), grad_weights


def there(rows: Tensor, exchange: Exchange) -> Tensor:
    """rows [A, ...] as they leave -> [R, ...] with their experts."""
    arrived = rows.new_empty(sum(exchange.receives), *rows.shape[1:])
    dist.all_to_all_single(arrived, rows, exchange.receives, exchange.sends, group=exchange.group)
    return arrived[exchange.order]


def back(rows: Tensor, exchange: Exchange) -> Tensor:
    """rows [R, ...] with their experts -> [A, ...] as they left: the same splits, exchanged."""
    leaving = torch.empty_like(rows)
    leaving[exchange.order] = rows
    returned = rows.new_empty(sum(exchange.sends), *rows.shape[1:])
    dist.all_to_all_single(
        returned, leaving, exchange.sends, exchange.receives, group=exchange.group
    )
    return returned


def _weights(weights: Tensor, exchange: Exchange) -> Tensor:
    """weights [T, k] -> [A, 1], of each row that leaves."""
    return weights[exchange.tokens, exchange.choices, None]
