"""Every layout of a machine for a model, and how fast each is: exhaustive. Pure.

`every` writes down all layouts that divide; `search` drops those that do not fit, times the rest
and sorts them. Nothing is sampled, and nothing is dropped for a rule of thumb: a layout is left
out only where it cannot run, or where another of the list is as fast and holds no more:

    what the software does not run (byhand.planner.runs), such as chunks of half a block
    selective recomputation where attention keeps no scores and the software chooses no products:
        computes more and saves as much as none
    ZeRO over one replica, sequence parallelism over one rank: the same step under another name

tests/topics/test_planner.py holds the list against a plain loop over `step`.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from byhand.costs.layout import RECOMPUTE, Layout
from byhand.costs.model import Model
from byhand.planner import memory as bytes_of
from byhand.planner.case import SELECTIVE, Case
from byhand.planner.machines import Machine
from byhand.planner.software import Software
from byhand.planner.step import Columns, Step, ask, columns, picked
from byhand.planner.table import DEGREES, Column, Table, table, total
from byhand.rank_groups.grid import ORDER

OUTER_DP = "tp-cp-ep-pp-dp"  # stages as near as can be, replicas far
ORDERS = ORDER, OUTER_DP
PLAN = "tp", "pp", "ep"  # what makes a plan another plan: dp and cp divide what is left
LEAST_TOKENS = 128  # of a sequence, that cp leaves a rank where no limit is named
Found = list[tuple[Layout, Step]]


def search(
    model: Model,
    machine: Machine | str,
    num_ranks: int,
    num_sequences: int,
    *,
    software: Software | str = "nemo",
    precision: str = "bf16",
    memory: float | None = None,
    compiled: bool = True,
    reduce_dtype: str | None = None,
    orders: Sequence[str] = ORDERS,
    one_each: bool = False,
    **limits: int,
) -> Found:
    """All layouts that fit, each with its step, fastest first.

    memory: bytes of a rank; the machine's where None. one_each: only the fastest of each tp, pp
    and ep, which takes a fifth of the time. limits: the most of a degree, by name: tp, pp, cp (128
    tokens a rank where it is not named), ep, rows, chunks, zero.

    Raises:
        ValueError: nothing divides, or nothing fits; names that are not known; counts and limits
            below 1, but for ZeRO's, which may be 0.

    >>> from byhand.costs import gpt
    >>> model = gpt(32, 4096, 32, num_tokens=32000, num_positions=4096, gated=True)
    >>> found = search(model, "h100-80gb", num_ranks=16, num_sequences=64, one_each=True)
    >>> layout, fastest = found[0]
    >>> print(f"{len(found)} layouts fit; the first is {layout}: {fastest.seconds:.2f} s")
    15 layouts fit; the first is dp 16 · tp 1 · pp 1 · rows 2 · ZeRO 2: 1.89 s
    """
    for name, count in {"num_ranks": num_ranks, "num_sequences": num_sequences}.items():
        if count < 1:
            raise ValueError(f"{name} is {count}: it must be at least 1")
    case = ask(
        model, [Layout()], machine, num_sequences, precision, software, compiled, reduce_dtype
    )
    limit = case.machine.memory if memory is None else memory
    parts = [every(case, num_ranks, order, limits) for order in orders]
    found = [result for at in parts if len(at) for result in fitting(replace(case, at=at), limit)]
    if not found:
        raise ValueError(refusal(case, num_ranks, limit, sum(map(len, parts))))
    return in_order(found, limit, one_each)


def refusal(case: Case, num_ranks: int, limit: float, tried: int) -> str:
    """Why there is no layout, in a sentence."""
    if not tried:
        return (
            f"{case.num_sequences} sequences of {case.sizes.positions} tokens and "
            f"{case.sizes.heads} heads cannot be shared out over {num_ranks} ranks"
        )
    return (
        f"none of {tried} layouts fits: {num_ranks} ranks of {limit / 2**30:.0f} GiB cannot hold "
        f"{case.model.parameters / 1e9:.1f} billion parameters and train them on "
        f"{case.num_sequences} sequences a step"
    )


def divisors(number: int, most: int | None = None) -> list[int]:
    """Of a number, up to `most`."""
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return sorted(d for d in {*small, *(number // each for each in small)} if not most or d <= most)


def every(case: Case, num_ranks: int, order: str, limits: Mapping[str, int]) -> Table:
    """All layouts whose degrees divide what they share out, as a table."""
    limits = limited(case, limits)
    grids = list(_grids(case, num_ranks, limits))
    if order != ORDER:  # the same place for everybody where there is one stage, or one replica;
        # and with cp or ep alone, dense layers and experts would have pipelines of their own
        grids = [at for at in grids if at[2] > 1 and at[0] > 1 and at[3] == at[4] == 1]
    if not grids:
        return table([Layout(order=order)]).take(slice(0))
    settings = list(_settings(case, limits))
    numbers = np.array(grids)[:, None, :], np.array(settings)[None, :, :]
    shape = len(grids), len(settings)
    both = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in numbers]
    rows = np.concatenate(both, axis=-1).reshape(-1, len(DEGREES) + 2)
    dp, tp, pp, cp = rows[:, :4].T
    zero, sequence = rows[:, 7], rows[:, 8]
    runs = ((zero == 0) | (dp * cp > 1)) & ((sequence == 0) | (tp > 1))
    runs &= (pp == 1) | np.isin(zero, case.software.runs.piped)
    *degrees, sequence, recompute = rows[runs].T
    columns = dict(zip(DEGREES, degrees, strict=True))
    return Table(**columns, sequence=sequence.astype(bool), recompute=recompute, order=order)


def limited(case: Case, limits: Mapping[str, int]) -> dict[str, int]:
    """The most of each degree: what is asked for, and what the software can run."""
    names = {"tp", "pp", "cp", "ep", "rows", "chunks", "zero"}
    if unknown := set(limits) - names:
        raise ValueError(f"no limit is called {min(unknown)}; there are {', '.join(sorted(names))}")
    for name, number in limits.items():
        if number < (least := 0 if name == "zero" else 1):
            raise ValueError(f"the most of {name} is {number}: it must be at least {least}")
    most = {"cp": max(1, case.sizes.positions // LEAST_TOKENS), **limits}
    for name, number in case.software.runs.most.items():
        most[name] = min(number, most.get(name, number))
    return most


def _grids(case: Case, num_ranks: int, limits: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """dp, tp, pp, cp, ep, rows and chunks."""
    s, batch = case.sizes, case.num_sequences
    for tp in divisors(s.heads, limits.get("tp")):
        if num_ranks % tp:
            continue
        for pp in divisors(num_ranks // tp, min(s.blocks, limits.get("pp", num_ranks))):
            for cp in divisors(num_ranks // tp // pp, limits["cp"]):
                dp = num_ranks // tp // pp // cp
                if batch % dp or (cp > 1 and s.positions % (2 * cp)):
                    continue
                experts = divisors(s.experts, limits.get("ep")) if s.experts else [1]
                for ep in experts:
                    if dp * cp % ep == 0:
                        yield from _cuts(case, (dp, tp, pp, cp, ep), limits)


def _cuts(
    case: Case, degrees: tuple[int, ...], limits: Mapping[str, int]
) -> Iterator[tuple[int, ...]]:
    """With every micro-batch, and every number of chunks; interleaving needs m to be p's multiple.

    Stages are cut into chunks of whole blocks, as nearly equal as can be; of some software equal.
    """
    dp, _, pp, *_ = degrees
    blocks, each, runs = case.sizes.blocks, case.num_sequences // dp, case.software.runs
    cuts = divisors(-(-blocks // pp), limits.get("chunks")) if pp > 1 else [1]
    cuts = [v for v in cuts if runs.cuts(blocks, pp, v)]
    for rows, chunks in itertools.product(divisors(each, limits.get("rows")), cuts):
        if chunks == 1 or each // rows % pp == 0:
            yield (*degrees, rows, chunks)


def _settings(case: Case, limits: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
    """ZeRO's stage, sequence parallelism, recomputation."""
    runs, software = case.software.runs, case.software
    again = [RECOMPUTE.index(each) for each in runs.recompute]
    if software.fused and not software.selective:
        again = [each for each in again if each != SELECTIVE]
    stages = [each for each in runs.zero if each <= limits.get("zero", 3)]
    yield from itertools.product(stages, map(int, runs.sequence), again)


def fitting(case: Case, limit: float) -> Iterator[tuple[Case, Columns, Column]]:
    """Those that fit, timed; a table at a time."""
    for start in range(0, len(case.at), BLOCK):
        part = replace(case, at=case.at.take(slice(start, start + BLOCK)))
        fits = total(bytes_of.held(part)) <= limit
        if fits.any():
            part = replace(part, at=part.at.take(fits))
            found = columns(part)
            yield part, found, found.seconds


BLOCK = 1 << 14  # rows of a table that stay near the processor


def in_order(
    found: Sequence[tuple[Case, Columns, Column]], limit: float, one_each: bool = False
) -> Found:
    """Layouts with their steps, the fastest first; equal ones in the order of the list."""
    order = np.argsort(np.concatenate([seconds for _, _, seconds in found]), kind="stable")
    if one_each:
        every = [np.stack([getattr(case.at, name) for name in PLAN], 1) for case, _, _ in found]
        _, first = np.unique(np.concatenate(every)[order], axis=0, return_index=True)
        order = order[np.sort(first)]
    wanted, start = np.sort(order), 0
    steps: Found = []
    collecting = gc.isenabled()
    gc.disable()  # thousands of small objects, none of them garbage
    try:
        for case, columns_, seconds in found:
            low, high = np.searchsorted(wanted, [start, start + len(seconds)])
            rows = wanted[low:high] - start
            parts, kinds = ({k: v[rows] for k, v in part.items()} for part in columns_)
            steps += picked(replace(case, at=case.at.take(rows)), Columns(parts, kinds), limit)
            start += len(seconds)
    finally:
        if collecting:
            gc.enable()
    return [steps[number] for number in np.searchsorted(wanted, order)]
