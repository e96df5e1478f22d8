"""Seconds in which a rank computes one block, or the head, with one micro-batch. Pure.

    product    2·m·k·n operations at the rate that large ones reach, and its operands' bytes
    attention  fused: half the square. Not fused: all of it, written to memory and read again
    small      norms, activations, sums with the residual: by bytes alone
    head       a product with all V tokens, and the loss's passes over the logits

A narrow product is slower since it carries more bytes an operation: with k the narrowest side the
share of the peak is about k / (k + k0), and k0 is operations a byte of the machine.
"""

from __future__ import annotations

import numpy as np

from byhand.planner.case import FULL, SELECTIVE, Case
from byhand.planner.table import Column

Side = Column | float
NORMS = 20  # bytes a token and feature: two norms (4 each), two sums with the residual (6 each)
SCORES_BACKWARD = 1.2  # bytes of scores' backward, for one of forward


def rate(case: Case, precision: str) -> float:
    """Operations a second of a large product."""
    share = case.software.products[case.machine.kind, precision]
    return case.machine.peak[precision] * share


def product(
    case: Case, m: Side, k: Side, n: Side, precision: str = "", weights: Side = 1
) -> Column:
    """Seconds of [m, k] @ [k, n]; weights: so many matrices [k, n], as experts have."""
    precision = precision or case.precision
    moved = case.software.operand[precision] * (m * k + weights * k * n + m * n)
    return np.asarray(2 * m * k * n / rate(case, precision) + moved / case.machine.memory_rate)


def last_product(case: Case) -> Column:
    """Forward of a block's last product, out of the MLP."""
    s, t = case.sizes, case.at.tp
    experts = s.experts / case.at.ep if s.experts else 1
    return product(case, case.tokens * s.visited, s.inside / t, s.features, weights=experts)


def products(case: Case) -> Column:
    """Forward of a block's products."""
    s, t, T = case.sizes, case.at.tp, case.tokens
    experts = s.experts / case.at.ep if s.experts else 1
    into = product(case, T, s.features, (s.queries + 2 * s.keys) / t)
    out = product(case, T, s.queries / t, s.features)
    up = product(case, T * s.visited, s.features, s.up * s.inside / t, weights=experts)
    return into + out + up + last_product(case)


def pairs(case: Case) -> Column:
    """Scores of a block on one rank: heads times the whole square."""
    s, at = case.sizes, case.at
    return at.rows * s.positions**2 / at.cp * s.heads / at.tp


def attention(case: Case) -> tuple[Column, Column]:
    """Forward and backward of attention between its products."""
    s, software, machine = case.sizes, case.software, case.machine
    head = s.queries / s.heads
    if software.fused:
        flops = 2 * pairs(case) * (head + software.head_cost)
        each = flops / (machine.peak["bf16"] * software.attention[machine.kind])
        forward = each * (1 + software.ring_cost * (case.at.cp - 1) / case.at.cp)
        return forward, software.attention_backward * forward
    operands = software.operand["bf16"] * 2 * (1 + 2 * head / s.positions)
    products = pairs(case) * (4 * head / rate(case, "bf16") + operands / machine.memory_rate)
    scores = pairs(case) * software.scores / machine.memory_rate
    return products + scores, 2 * products + SCORES_BACKWARD * scores


def small(case: Case) -> Column:
    """Forward, and as long again backward, of a block's element-wise work."""
    s, T = case.sizes, case.tokens
    between = NORMS * s.features * T / case.shared
    inside = 2 * (s.up + 1) * s.inside / case.at.tp * T * s.visited
    passes = case.software.traffic * (1 if case.compiled else case.software.eager)
    return passes * (between + inside) / case.machine.memory_rate


def again(case: Case) -> Column:
    """What backward computes again of a block's forward."""
    software, recompute, square = case.software, case.at.recompute, attention(case)[0]
    full = products(case) + square + small(case)
    if software.stops_early and case.reduce_bytes > 2:
        full = full - last_product(case)
    some = software.selective * products(case) + small(case) if software.fused else square
    return np.where(recompute == FULL, full, np.where(recompute == SELECTIVE, some, 0.0))


def head(case: Case) -> Column:
    """Forward and backward of the head and the loss."""
    s, t, T = case.sizes, case.at.tp, case.tokens
    logits = case.software.loss * T * s.tokens / t / case.machine.memory_rate
    return 3 * product(case, T, s.features, s.tokens / t, "bf16") + logits
