"""Which rows a rank sends to whom, how many come, and how they are sorted here and there.

A *slot* is the place of one copy of an expert, numbered from rank to rank. An *assignment* is one
choice of one token; all first choices come before all second ones. An example, T = 3 and k = 2,
on two ranks with the same tokens:

    placement [[0, 1], [2]]      slots 0 and 1 are on rank 0, slot 2 on rank 1; slot 3 is nowhere

    chosen          assignment   0  1  2    3  4  5
    [[2,  0],       token        0  1  2    0  1  2
     [0,  1],       choice       0  0  0    1  1  1
     [2, -1]]       expert       2  0  2    0  1 -1
                    slot         2  0  2    0  1  3

    leave           assignments  1  3  4 │ 0  2     by slot, which is by rank; nowhere stays
                    for slot     0  0  1 │ 2  2     so rank 0 is sent 3 rows, and rank 1 two

    arrive          for slot     0  0  1 │ 0  0  1  at rank 0: by rank, and each rank's by slot
                    order        0  1  3  4 │ 2  5  takes them by slot: 0 0 0 0 │ 1 1

Only the number of rows for each slot is sent: a receiver cannot know it. Splits that do not fit
are an abort, or silently wrong rows.

T tokens of this rank, k experts a token, A assignments that leave, R rows that arrive, n ranks.
Simplified: the numbers are needed on the host, for which a GPU would stand still.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.placement import Placement

Group = dist.ProcessGroup | None


@dataclass(frozen=True)
class Exchange:
    """Who sends which rows to whom, for one forward and its backward.

    >>> def counted(rank, world_size):
    ...     there = make_exchange(torch.tensor([[0], [0], [0]]), [[0], [1]], capacity=2)
    ...     return there.loads, there.num_dropped
    >>> launch(counted, 2).results
    [([4], 1), ([0], 1)]
    """

    tokens: Tensor  # [A], of each row that leaves: its token,
    choices: Tensor  # [A], and which of the token's k choices it is
    sends: list[int]  # rows to each rank
    receives: list[int]  # rows from each rank
    order: Tensor  # [R], the numbers of the rows that arrive, expert by expert
    loads: list[int]  # rows for each expert here
    num_tokens: int
    num_dropped: int  # assignments beyond the capacity
    group: Group


def make_exchange(
    chosen: Tensor, placement: Placement, group: Group = None, capacity: int | None = None
) -> Exchange:
    """The exchange of tokens whose experts are chosen [T, k]; -1 in it goes nowhere.

    placement: a list of experts for each rank; an expert on several ranks has its tokens take
    turns. capacity: the most rows of this rank for each copy of an expert; second choices are
    dropped before first ones, later tokens before earlier ones.

    Sends the number of rows for each slot: one all-to-all, of 8 bytes for each slot elsewhere.

    Raises:
        ValueError: an expert that is chosen is on no rank, or the placement is for other ranks.

    >>> def exchange(rank, world_size):
    ...     chosen = torch.tensor([[0], [1], [1]])
    ...     there = make_exchange(chosen, placement=[[0], [1]])
    ...     return there.sends, there.receives
    >>> launch(exchange, 2).results
    [([1, 2], [1, 1]), ([1, 2], [2, 2])]
    """
    slots_on = [len(experts) for experts in placement]  # each rank
    slots = slots_of(chosen, placement, dist.get_world_size(group))
    leaving = _leaving(slots, sum(slots_on), capacity)
    sent = torch.bincount(slots[leaving], minlength=sum(slots_on))  # rows for each slot
    received = _exchange_counts(sent, slots_on, group)  # [n, slots here]
    num_tokens = max(len(chosen), 1)
    return Exchange(
        tokens=leaving % num_tokens,
        choices=leaving.div(num_tokens, rounding_mode="floor"),
        sends=[int(rows.sum()) for rows in sent.split(slots_on)],
        receives=received.sum(dim=1).tolist(),
        order=_by_slot(received),
        loads=received.sum(dim=0).tolist(),
        num_tokens=len(chosen),
        num_dropped=int((chosen >= 0).sum()) - len(leaving),
        group=group,
    )


def capacity(num_tokens: int, top_k: int, num_experts: int, factor: float) -> int:
    """The rows that an expert takes of a rank: `factor` times its even share, rounded up.

    >>> capacity(num_tokens=100, top_k=2, num_experts=8, factor=1.25)
    32
    """
    share = factor * num_tokens * top_k / num_experts
    return math.ceil(round(share, 7))  # 1.1 · 50 is a little over 55 in floating point


def slots_of(chosen: Tensor, placement: Placement, num_ranks: int) -> Tensor:
    """chosen [T, k] -> the slot of each assignment [k·T]; the number after the last is nowhere."""
    if len(placement) != num_ranks:
        raise ValueError(f"a placement on {len(placement)} ranks, in a group of {num_ranks}")
    copies: dict[int, list[int]] = {}  # of each expert: their slots
    for slot, expert in enumerate(itertools.chain(*placement)):
        copies.setdefault(expert, []).append(slot)
    experts = chosen.T.flatten()
    if unknown := set(experts.unique().tolist()) - {-1, *copies}:
        raise ValueError(
            f"tokens go to expert {min(unknown)}, which is on no rank: the placement is "
            f"{[list(held) for held in placement]}"
        )
    nowhere = [sum(map(len, placement))]
    rows = [copies.get(expert, nowhere) for expert in range(max(copies, default=-1) + 1)]
    rows.append(nowhere)  # the last row, which expert -1 finds
    widest = max(map(len, rows))
    table = experts.new_tensor([row + nowhere * (widest - len(row)) for row in rows])
    num_copies = experts.new_tensor([len(row) for row in rows])
    tokens = torch.arange(len(chosen), device=chosen.device).repeat(chosen.shape[1])
    return table[experts, tokens % num_copies[experts]]  # an expert's copies take turns


def _leaving(slots: Tensor, num_slots: int, capacity: int | None) -> Tensor:
    """slots [k·T] -> the assignments that leave [A], by slot and then as they come."""
    order = slots.argsort(stable=True)
    slots = slots[order]
    leaves = slots < num_slots
    if capacity is not None:
        wanted = torch.bincount(slots, minlength=num_slots + 1)
        first = wanted.cumsum(0) - wanted  # where each slot's assignments begin
        place_in_slot = torch.arange(len(slots), device=slots.device) - first[slots]
        leaves &= place_in_slot < capacity
    return order[leaves]


def _by_slot(received: Tensor) -> Tensor:
    """received [n, slots here] -> the numbers of the rows that arrive, slot by slot [R].

    They arrive rank by rank, and each rank's by slot.
    """
    num_ranks, num_slots = received.shape
    slots = torch.arange(num_slots, device=received.device).repeat(num_ranks)
    return slots.repeat_interleave(received.flatten()).argsort(stable=True)


def _exchange_counts(sent: Tensor, slots_on: Sequence[int], group: Group) -> Tensor:
    """The rows for each slot -> [n, slots here]: the rows that each rank has for mine."""
    mine, n = slots_on[dist.get_rank(group)], len(slots_on)
    received = sent.new_empty(n * mine)
    dist.all_to_all_single(received, sent, [mine] * n, list(slots_on), group=group)
    return received.view(n, mine)
