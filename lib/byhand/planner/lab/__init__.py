"""What lecture 17 asks of the planner: published rows scored, constants turned.

`pictures` has what it draws. Nothing here starts a rank: a planner is arithmetic.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.planner import peer
from byhand.planner.machines import MACHINES
from byhand.planner.published import Published, published, scored
from byhand.planner.search import ORDERS, OUTER_DP, every
from byhand.planner.software import INTERVALS, SOFTWARE, Software
from byhand.planner.step import Step, ask, step

GROUPS = {  # what the book's planner shows of a step, and the parts that belong to it
    "computes": ("products", "attention", "small", "head", "optimizer", "other"),
    "recomputes": ("again",),
    "tp, cp, ep": ("tp", "cp", "ep"),
    "pp": ("pp",),
    "idles": ("idle",),
    "gradients": ("gradients",),
}
NEIGHBOURS = {  # software, and another whose constants were fitted to other rows
    "megatron-2021": "megatron-2022",
    "megatron-2022": "megatron-2021",
    "nemo": "megatron-bridge",
    "megatron-bridge": "nemo",
    "fsdp": "torchtitan",
    "torchtitan": "fsdp",
    "torchtitan-async": "torchtitan",
}


def short(layout: Layout) -> str:
    """A layout in few letters: v chunks, sp sequence parallelism; what is 1 or 0 is not said."""
    degrees = ("cp", layout.cp), ("ep", layout.ep), ("rows", layout.rows), ("v", layout.chunks)
    words = [f"{name} {getattr(layout, name)}" for name in ("dp", "tp", "pp")]
    words += [f"{name} {number}" for name, number in degrees if number > 1]
    words += [f"ZeRO {layout.zero}"] * bool(layout.zero) + ["sp"] * layout.sequence
    words += [layout.recompute] * (layout.recompute != "none")
    words += ["stages near"] * (layout.order == OUTER_DP)
    return " · ".join(words)


def grouped(found: Step) -> dict[str, float]:
    """Seconds of each of GROUPS: they add up to the step's."""
    return {name: sum(found.parts[part] for part in parts) for name, parts in GROUPS.items()}


# Published rows


def predicted(row: Published, software: str | None = None) -> float:
    """Seconds of that run on paper. software: another's constants."""
    return met(row, software).seconds


def met(row: Published, software: str | None = None) -> Step:
    """The step of that run on paper."""
    return step(
        row.model,
        row.layout,
        row.machine,
        row.num_sequences,
        precision=row.precision,
        software=software or row.software,
        compiled=row.compiled,
        reduce_dtype=row.reduce_dtype,
    )


def ratios() -> dict[str, list[float]]:
    """Predicted over published seconds of every scored row, by software and kind of GPU."""
    found: dict[str, list[float]] = {}
    order = list(NEIGHBOURS)
    for row in sorted(scored(), key=lambda row: (order.index(row.software), row.machine)):
        found.setdefault(peer.family(row), []).append(predicted(row) / row.seconds)
    return found


def missed(values: Sequence[float]) -> float:
    """The mean error of ratios."""
    return statistics.mean(abs(ratio - 1) for ratio in values)


def doubts(software: str) -> dict[str, tuple[Software, Software]]:
    """By fitted constant: the software with as little of it as its interval allows, and as much."""
    by, found = SOFTWARE[software], {}
    for name, within in INTERVALS[software].items():
        constant, *key = name.split()
        turned = []
        for factor in (1 / (1 + within), 1 + within):
            value: Any = getattr(by, constant)
            if key:  # one of a table, by precision, or by kind of GPU and precision
                one = key[0] if len(key) == 1 else tuple(key)
                other: Any = {**value, one: factor * value[one]}
            else:
                other = factor * value
            turned.append(replace(by, **{constant: other}))
        found[name] = turned[0], turned[1]
    return found


def unseen() -> dict[str, tuple[int, float, float]]:
    """By software: rows, mean error with its own constants, and with its neighbour's.

    Rows whose kind of GPU or precision the neighbour does not know are left out of both.
    """
    found = {}
    for name, other in NEIGHBOURS.items():
        known = SOFTWARE[other].products
        rows = [
            row
            for row in scored()
            if row.software == name and (MACHINES[row.machine].kind, row.precision) in known
        ]
        own, theirs = (
            missed([predicted(row, by) / row.seconds for row in rows]) for by in (name, other)
        )
        found[name] = len(rows), own, theirs
    return found


def never_fitted() -> list[tuple[str, float, float]]:
    """Steps of 530 B that no constant was fitted to: (what ran, seconds on paper, published).

    Sources: Korthikanti et al. 2022, arXiv:2205.05198, section 6.3; Smith et al. 2022,
    arXiv:2201.11990, section 2.4, whose software, DeepSpeed's pipeline below Megatron's layers,
    the planner does not know: here with the constants of Megatron 2021, micro-batches of one
    sequence, one chunk.
    """
    small, large = run_of("korth-530B-selective"), run_of("sc21-t1-529.6B")
    runs = [("Megatron 2022", small, 8, 3, 2240, 39.15)]
    for dp, seconds in ((8, 60.1), (10, 50.2), (12, 44.4)):
        runs.append(("DeepSpeed 2021", large, dp, 1, 1920, seconds))
    found = []
    for software, like, dp, chunks, num_sequences, seconds in runs:
        layout = replace(like.layout, dp=dp, chunks=chunks)
        what = f"{software}, {layout.num_ranks} GPUs, {num_sequences} sequences"
        run = replace(like, layout=layout, num_sequences=num_sequences)
        found.append((what, predicted(run), seconds))
    return found


def beside_peer() -> dict[str, tuple[int, tuple[float, float], tuple[float, float]]]:
    """By software and GPU, then of all: rows, our mean and worst error, and another planner's."""
    theirs = peer.kept()["seconds"]
    groups = {name: list(group) for name, group in groupby(peer.rows(), peer.family)}
    groups["all"] = peer.rows()
    return {
        name: (
            len(rows),
            peer.missed(rows, map(predicted, rows)),
            peer.missed(rows, (theirs[row.name] for row in rows)),
        )
        for name, rows in groups.items()
    }


def pairs() -> list[tuple[float, float]]:
    """(published, predicted) ratio of GPU-seconds a token, of pairs of published steps."""
    return [
        (
            _each(one, one.seconds) / _each(other, other.seconds),
            _each(one, predicted(one)) / _each(other, predicted(other)),
        )
        for one, other in paired()
    ]


def paired() -> Iterator[tuple[Published, Published]]:
    """Steps of one model, on one kind of machine, with the same software, in two layouts."""
    kinds = defaultdict(list)
    for row in scored():
        kinds[row.software, row.machine, row.precision, row.compiled, row.model].append(row)
    for alike in kinds.values():
        for one, other in combinations(alike, 2):
            if one.layout != other.layout:
                yield one, other


def _each(row: Published, seconds: float) -> float:
    """GPU-seconds of a token."""
    return seconds * row.layout.num_ranks / (row.num_sequences * row.model.num_positions)


def peaks() -> list[tuple[float, float]]:
    """(GiB measured, GiB on paper) of each published step that tells its peak."""
    return [(row.gib, met(row).num_bytes / 2**30) for row in scored() if row.gib]


def run_of(name: str) -> Published:
    """The published run of that name."""
    return next(row for row in published() if row.name == name)


# Search


def num_layouts(
    model: Model, machine: str, num_ranks: int, num_sequences: int, software: str
) -> int:
    """Layouts that divide, whether they fit or not."""
    case = ask(model, [Layout()], machine, num_sequences, software=software)
    return sum(len(every(case, num_ranks, order, {})) for order in ORDERS)
