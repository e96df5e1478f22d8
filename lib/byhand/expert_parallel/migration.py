"""Experts change their rank, or are copied, between two steps; and copies stay equal.

Whoever gets an expert needs its weights and its optimizer's state: with AdamW three times the
weights. A copy is one more replica of that expert alone, so the copies' gradients are summed
after each backward, and every copy takes the same step.

n ranks in `group` (None: all of them).
Simplified: experts that are split over tensor-parallel ranks stay where they are; nothing of a
move hides behind computing.
Source: He et al. 2022 (FasterMoE), https://doi.org/10.1145/3503221.3508418: hot experts copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.layer import Experts
from byhand.expert_parallel.placement import Placement, moves
from byhand.model.shards import copy_back, views

Group = dist.ProcessGroup | None


def move(experts: Experts, placement: Placement, optimizer: Any) -> None:
    """Change, on all ranks together, which rank holds which expert. Gradients begin anew, at zero.

    optimizer: an AdamW of just these experts' parameters; its state travels with them.
    Sends each expert to each rank that gets it: 3 times its bytes, in one message.

    Raises:
        ValueError: an expert would be on no rank, or experts are split over ranks.
    """
    experts.check(placement)
    if experts.tp:
        raise ValueError("experts that are split by tensor parallelism cannot be moved: tp is set")
    rank, num_numbers = dist.get_rank(experts.group), 3 * sum(map(math.prod, experts.shapes))
    held = _packed(experts, optimizer, experts.placement[rank])
    pending: list[Any] = []  # works
    for number, source, target in moves(experts.placement, placement):
        if rank == source:
            pending.append(dist.isend(held[number], _global(experts, target), tag=number))
        elif rank == target:
            held[number] = experts.like.new_empty(num_numbers)
            pending.append(dist.irecv(held[number], _global(experts, source), tag=number))
    for work in pending:
        work.wait()
    experts.placement = [list(numbers) for numbers in placement]
    _unpack([held[number] for number in experts.placement[rank]], experts, optimizer)


def _packed(experts: Experts, optimizer: Any, numbers: Sequence[int]) -> dict[int, Tensor]:
    """By expert: its weights, then the means and squares of its gradients, as one flat tensor."""
    lists, size = (optimizer.parameters, optimizer.mean, optimizer.square), len(experts.shapes)
    return {
        number: torch.cat([t.flatten() for each in lists for t in each[at : at + size]])
        for at, number in zip(range(0, len(numbers) * size, size), numbers, strict=True)
    }


def _unpack(flats: Sequence[Tensor], experts: Experts, optimizer: Any) -> None:
    layers, state, size = [], [[], []], len(experts.shapes)
    for flat in flats:
        shaped = list(views(flat, 3 * experts.shapes))
        weights, *others = (shaped[at : at + size] for at in range(0, 3 * size, size))
        layers.append(experts.build(list(zip(weights[::2], weights[1::2], strict=True))))
        for kept, more in zip(state, others, strict=True):
            kept += more
    experts.layers = layers
    optimizer.parameters, (optimizer.mean, optimizer.square) = experts.parameters(), state


def sum_copies(experts: Experts) -> None:
    """Sum the gradients of every replicated expert over its copies, in place: then they are equal.

    The first holder adds up what the others send, and sends the sum back: two messages of the
    expert's bytes for each further copy.
    """
    rank = dist.get_rank(experts.group)
    for number in range(experts.num_experts):  # in one order on all ranks: nobody waits in a circle
        first, *others = (r for r, held in enumerate(experts.placement) if number in held)
        if not others or rank not in (first, *others):
            continue
        gradients = experts.layers[experts.placement[rank].index(number)].gradients()
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        if rank == first:
            for peer in others:
                dist.recv(term := torch.empty_like(flat), _global(experts, peer))
                flat += term
            for peer in others:
                dist.send(flat, _global(experts, peer))
        else:
            dist.send(flat, _global(experts, first))
            dist.recv(flat, _global(experts, first))
        copy_back(flat, gradients)


def _global(experts: Experts, rank: int) -> int:
    """send and recv take ranks of the world."""
    return rank if experts.group is None else dist.get_global_rank(experts.group, rank)
