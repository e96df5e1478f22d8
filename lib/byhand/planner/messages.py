"""Seconds of what ranks send each other in a step, by the level that a group reaches. Pure.

A ring's slowest link sets its pace: NVLink, or the network cards. A group with k ranks on a host
has k cards there. Source: byhand.costs.machine, which counts them rank by rank.
"""

from __future__ import annotations

import numpy as np

from byhand.planner.case import FULL, Case
from byhand.planner.computing import attention
from byhand.planner.machines import ALPHA, CARD, NVLINK
from byhand.planner.table import Column


def ring(case: Case, axis: str, num_bytes: Column, messages: Column | int = 1) -> Column:
    """Of an all-gather to that many bytes over an axis, cut in so many; a reduce-scatter's too."""
    n, machine = case.at.size(axis), case.machine
    network = case.at.cards(axis, machine.ranks_per_host) * machine.between * CARD
    rate = np.minimum(network, machine.inside * NVLINK)
    return (n - 1) * (num_bytes / n / rate + ALPHA * messages)


def message(case: Case) -> Column:
    """Bytes of a micro-batch's activations, whole."""
    return case.tokens * case.sizes.features * 2


def tensor(case: Case) -> Column:
    """Of a block over tp: two all-reduces forward, two backward, two more where it is recomputed.

    With sequence parallelism each is a reduce-scatter and an all-gather: as many bytes.
    """
    times = np.where(case.at.recompute == FULL, 6, 4)
    shown = case.software.tensor * (case.software.fp8_messages if case.precision == "fp8" else 1)
    return shown * times * 2 * ring(case, "tp", message(case))


def context(case: Case) -> Column:
    """Of a block over cp: what attention does not hide of keys and values going round."""
    keys = 2 * case.sizes.keys / case.at.tp * case.tokens * 2 * case.at.cp
    there, back = attention(case)
    once = ring(case, "cp", keys)
    return np.maximum(0, once - there) + np.maximum(0, 2 * once - back)


def experts(case: Case) -> Column:
    """Of a block over ep: rows to their experts and back, forward and backward."""
    return 4 * ring(case, "ep", case.part["mlp"].routed * message(case))


def between_stages(case: Case) -> Column:
    """Bytes a second from a rank to one of another stage: inside a host if all stages share it."""
    stays = np.isinf(case.at.cards("pp", case.machine.ranks_per_host))
    return np.where(stays, case.machine.inside * NVLINK, case.machine.between * CARD)


def hop(case: Case) -> Column:
    """To the next stage: each rank of tp sends its share, gathered there where it must be whole."""
    at, rate = case.at, between_stages(case)
    whole = np.where(at.sequence, 0, ring(case, "tp", message(case)))
    return np.where(at.pp > 1, message(case) / at.tp / rate + whole + case.software.hop, 0.0)


def gradients(case: Case, dense: Column, of_experts: Column) -> Column:
    """Of all that is summed and gathered over replicas, hidden or not.

    From ZeRO-2 on every block by itself, for every micro-batch; but under a pipeline ZeRO-3 keeps a
    stage whole for the step, and sums its gradients once (torchtitan's way).
    """
    at, blocks = case.at, case.blocks[0] + 1
    total = np.zeros(len(at))
    for axis, count in (("dp-cp", dense), ("expert-dp", of_experts)):
        messages = np.where(at.zero >= 2, blocks, 1)
        reduce = ring(case, axis, count * case.reduce_bytes, messages)
        gather = ring(case, axis, count * case.software.weight_bytes, messages)
        whole = (at.zero < 2) | ((at.zero == 3) & (at.pp > 1))
        reduces = np.where(whole, 1, case.micro_batches)
        gathers = np.where((at.zero == 3) & (at.pp == 1), 2 * case.micro_batches, 1)
        found = np.where(at.zero == 0, 2 * reduce, reduces * reduce + gathers * gather)
        total = total + np.where(count > 0, found, 0)
    return total


def table_of_tokens(case: Case) -> Column:
    """The all-reduce of a tied table's gradients, where the head is another stage's."""
    head = case.part["head"]
    num_bytes = head.split / case.at.tp * case.reduce_bytes
    return np.where((case.at.pp > 1) & head.tied, num_bytes / between_stages(case), 0.0)
