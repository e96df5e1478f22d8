"""The plan of a journey: which rows a rank sends to whom, how many come, how they are sorted.

    chosen [T, k]     expert 2    expert 0    expert 2    nowhere     ...
    slots [k·T]       the place of a copy of that expert, numbered from rank to rank
    assignments [A]   sorted by slot, which is by rank; beyond the capacity they stay
    sends             rows for each rank's slots together, and so on: all that an all-to-all needs

Only the number of rows for each slot is sent: a receiver cannot know it. Splits that do not fit
are an abort, or silently wrong rows.

T tokens of this rank, k experts a token, A assignments that leave, R rows that arrive, n ranks.
Simplified: the numbers are needed on the host, for which a GPU would stand still.
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

    Sends the number of rows for each slot: one all-to-all, of 8 bytes for each slot elsewhere.

    Raises:
        ValueError: an expert that is chosen is on no rank, or the placement is for other ranks.
    """
    counts = [len(experts) for experts in placement]
    slots = _slots(chosen, placement, dist.get_world_size(group))
    assignments, sent = _leaving(slots, sum(counts), capacity)
    received = _exchange_counts(sent, counts, group)  # [n, slots here]
    arriving = torch.arange(received.shape[1], device=chosen.device).repeat(len(received))
    return Plan(
        assignments=assignments,
        tokens=assignments % max(len(chosen), 1),
        sends=[int(part.sum()) for part in sent.split(counts)],
        receives=received.sum(dim=1).tolist(),
        order=arriving.repeat_interleave(received.flatten()).argsort(stable=True),
        loads=received.sum(dim=0).tolist(),
        num_tokens=len(chosen),
        num_dropped=int((chosen >= 0).sum()) - len(assignments),
        group=group,
    )


def capacity(num_tokens: int, top_k: int, num_experts: int, factor: float) -> int:
    """The rows that an expert takes of a rank: `factor` times its even share, rounded up."""
    return math.ceil(factor * num_tokens * top_k / num_experts)


def _slots(chosen: Tensor, placement: Placement, num_ranks: int) -> Tensor:
    """chosen [T, k] -> the slot of each assignment [k·T], first choices first.

    Slots are numbered from rank to rank; the number after the last one is nowhere.
    """
    if len(placement) != num_ranks:
        raise ValueError(f"a placement on {len(placement)} ranks, in a group of {num_ranks}")
    copies: dict[int, list[int]] = {}
    for slot, expert in enumerate(expert for experts in placement for expert in experts):
        copies.setdefault(expert, []).append(slot)
    flat = chosen.T.flatten()
    if unknown := set(flat.unique().tolist()) - {-1, *copies}:
        raise ValueError(
            f"tokens go to expert {min(unknown)}, which is on no rank: the placement is "
            f"{[list(experts) for experts in placement]}"
        )
    table = flat.new_zeros(max(copies, default=0) + 1, max(map(len, copies.values()), default=1))
    number = flat.new_ones(len(table))
    for expert, slots in copies.items():
        table[expert, : len(slots)], number[expert] = flat.new_tensor(slots), len(slots)
    tokens = torch.arange(len(flat), device=flat.device) % max(len(chosen), 1)
    slots = table[flat.clamp(min=0), tokens % number[flat.clamp(min=0)]]
    return slots.where(flat >= 0, sum(map(len, placement)))


def _leaving(slots: Tensor, num_slots: int, capacity: int | None) -> tuple[Tensor, Tensor]:
    """The assignments that leave, by slot and then as they come; the rows for each slot."""
    order = slots.argsort(stable=True)
    sent = torch.bincount(slots, minlength=num_slots + 1)
    begins = sent.cumsum(0) - sent
    leaves = slots[order] < num_slots
    if capacity is not None:
        places = torch.arange(len(slots), device=slots.device) - begins[slots[order]]
        leaves, sent = leaves & (places < capacity), sent.clamp(max=capacity)
    return order[leaves], sent[:num_slots]


def _exchange_counts(sent: Tensor, counts: Sequence[int], group: Group) -> Tensor:
    """The rows for each slot -> [n, slots here]: the rows that each rank has for mine."""
    mine, n = counts[dist.get_rank(group)], len(counts)
    received = sent.new_empty(n * mine)
    dist.all_to_all_single(received, sent, [mine] * n, list(counts), group=group)
    return received.view(n, mine)
