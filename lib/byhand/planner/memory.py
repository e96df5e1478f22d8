"""Bytes that the fullest rank holds, by kind, for a whole table of layouts at once. Pure.

State and activations are byhand.costs.held's, which the test holds them against. To them come the
loss, what FSDP gathers for a moment, and what CUDA and NCCL keep for themselves.
Sources: Korthikanti et al. 2022, arXiv:2205.05198 (activations); Rajbhandari et al. 2020,
arXiv:1910.02054 (state).
"""

from __future__ import annotations

import numpy as np

from byhand.costs.counting import SHARDED_FROM
from byhand.planner.case import FULL, SELECTIVE, Case
from byhand.planner.table import Column

BUFFERS = 2e9  # bytes of a GPU that CUDA's context, NCCL and the allocator's gaps take


def parameters(case: Case, last: bool = False) -> tuple[Column, Column]:
    """Of a rank of the first stage, or of the last: (that all replicas have, of experts)."""
    t, part, blocks = case.at.tp, case.part, case.blocks[last]
    alone, halves = case.at.pp == 1, (part["attention"], part["mlp"])

    def dense(*names: str) -> Column:
        parts = [part[name] for name in names]
        whole = sum(p.whole + p.by_token + p.partial for p in parts)
        return whole + sum(p.split for p in parts) / t

    body = blocks * dense("attention", "mlp")
    copy = np.where(alone & part["head"].tied, 0, dense("head"))
    ends = dense("norm") + copy if last else dense("embedding")
    both = dense("embedding", "norm") + copy
    experts = blocks * sum(half.experts for half in halves) / t / case.at.ep
    return body + np.where(alone, both, ends), experts


def state(case: Case, last: bool) -> dict[str, Column]:
    """Weights, gradients and the optimizer's, sharded as ZeRO's stage has it."""
    dense, experts = parameters(case, last)
    at, found = case.at, {}
    for kind, each in case.software.state.items():
        sharded = at.zero >= SHARDED_FROM[kind]
        copies = np.where(sharded, at.dp * at.cp, 1)
        of_experts = np.where(sharded, at.dp * at.cp // at.ep, 1)
        found[kind] = each * (dense / copies + experts / of_experts)
    return found


def masks(case: Case) -> float:
    """Bytes a token of one dropout's mask that byhand.costs counts, and this software has not."""
    dropped = not case.software.dropout and case.part["attention"].whole
    return case.sizes.features if dropped else 0.0


def saved(case: Case) -> Column:
    """Bytes a token that one block saves: of all of it where its blocks are recomputed whole."""
    t, halves = case.at.tp, (case.part["attention"], case.part["mlp"])
    split = sum(half.saved[0] for half in halves)
    whole = sum(half.saved[1] for half in halves) - 2 * masks(case)
    some = case.at.recompute == SELECTIVE
    if case.software.fused:  # "selective" is every second product's output, where there is such
        kept = np.where(some & (case.software.selective > 0), 0.5, 1.0)
        return kept * (split / t + whole / case.shared)
    scores = np.where(some, 0, 5 * case.sizes.heads * case.sizes.positions)
    return (split + scores) / t + whole / case.shared


def in_flight(case: Case, last: bool) -> Column:
    """Micro-batches' worth of a stage that wait for backward: byhand.costs.counting.in_flight."""
    p, v, m = case.at.pp, case.at.chunks, case.micro_batches
    after = 0 if last else p - 1
    interleaved = np.minimum(2 * after + (v - 1) * p + 1, m * v) / v
    return np.where(v == 1, np.minimum(after + 1, m), interleaved)


def activations(case: Case, last: bool) -> Column:
    """Of all micro-batches in flight, and of the block at work where it is recomputed."""
    part, T, blocks = case.part, case.tokens, case.blocks[last]
    full, alone = case.at.recompute == FULL, case.at.pp == 1
    entry = case.sizes.features * 2 / case.shared
    body = blocks * np.where(full, entry, saved(case))
    first = (part["embedding"].saved[1] - masks(case)) / case.shared
    end = (part["norm"].saved[1] + part["head"].saved[1]) / case.shared
    ends = end if last else first
    stage = body + np.where(alone, first + end, ends)
    at_work = np.where(full, saved(case), 0)
    return T * (in_flight(case, last) * stage + at_work)


def loss(case: Case, last: bool) -> Column:
    """Of the logits and their gradients."""
    here = last | (case.at.pp == 1)
    return np.where(here, case.software.logit * case.tokens * case.sizes.tokens / case.at.tp, 0.0)


def gathered(case: Case, last: bool) -> Column:
    """What ZeRO-3 has whole for a moment: two blocks' weights and gradients, or a whole stage's."""
    dense, experts = parameters(case, last)
    whole = dense + experts
    alone, weight = case.at.pp == 1, case.software.weight_bytes
    some = np.where(alone, np.minimum(1, 2 / np.maximum(case.blocks[last], 1)), 1)
    each = weight + np.where(alone, weight, case.reduce_bytes)
    return np.where(case.at.zero == 3, each * some * whole, 0.0)


def held(case: Case) -> dict[str, Column]:
    """By kind, on the stage that holds more: the first or the last."""
    ends = []
    for last in (False, True):
        found = state(case, last)
        found["activations"] = activations(case, last)
        found["loss"] = loss(case, last)
        found["gathered"] = gathered(case, last)
        ends.append(found)
    first_fuller = sum(ends[0].values()) >= sum(ends[1].values())
    both = {kind: np.where(first_fuller, ends[0][kind], ends[1][kind]) for kind in ends[0]}
    return both | {"buffers": np.full(len(case.at), BUFFERS)}
