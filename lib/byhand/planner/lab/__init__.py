"""What lecture 17 asks of the planner: published rows scored, rules held against the best layout.

`pictures` has what it draws. Nothing here starts a rank: a planner is arithmetic.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.planner import peer
from byhand.planner.__main__ import main
from byhand.planner.machines import MACHINES
from byhand.planner.published import Published, published, scored
from byhand.planner.search import ORDERS, OUTER_DP, Found, every
from byhand.planner.software import SOFTWARE
from byhand.planner.step import Step, ask, step

GROUPS = {  # what a picture shows of a step, and the parts that belong to it
    "computes": ("products", "attention", "small", "head", "optimizer", "other"),
    "recomputes": ("again",),
    "tp, cp, ep": ("tp", "cp", "ep"),
    "pp": ("pp",),
    "idles": ("idle",),
    "gradients": ("gradients",),
}
MESSAGES = "tp", "cp", "ep", "pp", "gradients"
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


def tool(command: str, places: int = 1) -> str:
    """What `python -m byhand.planner` says to these words, its first places, wrapped."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        main(command.split())
    head, *blocks, flags = told.getvalue().strip().split("\n\n")
    lines = "\n".join([head, *blocks[:places], flags]).splitlines()
    look: dict[str, Any] = {
        "break_on_hyphens": False,
        "break_long_words": False,
        "subsequent_indent": "      ",
    }
    return "\n".join(textwrap.fill(line, 88, **look) for line in lines)


def grouped(found: Step) -> dict[str, float]:
    """Seconds of each of GROUPS: they add up to the step's."""
    return {name: sum(found.parts[part] for part in parts) for name, parts in GROUPS.items()}


def talking(found: Step) -> float:
    """The share of a step in which messages show."""
    return sum(found.parts[part] for part in MESSAGES) / found.seconds


# Published rows


def predicted(row: Published, software: str | None = None, between: float | None = None) -> float:
    """Seconds of that run on paper. software: another's constants. between: its cards' rate."""
    machine = MACHINES[row.machine]
    if between is not None:
        machine = replace(machine, between=between)
    found = step(
        row.model,
        row.layout,
        machine,
        row.num_sequences,
        precision=row.precision,
        software=software or row.software,
        compiled=row.compiled,
        reduce_dtype=row.reduce_dtype,
    )
    return found.seconds


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


def farthest(most: int) -> list[tuple[str, float]]:
    """The rows that the planner misses by most: (name, error)."""
    found = [(row.name, predicted(row) / row.seconds - 1) for row in scored()]
    return sorted(found, key=lambda pair: -abs(pair[1]))[:most]


def left_out() -> dict[str, int]:
    """Why rows are not scored, and how many."""
    reasons = [row.left_out for row in published() if row.left_out]
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


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


def regret(found: Found, rule: Callable[[Layout], bool]) -> float | None:
    """How much slower than the best the best is that obeys a rule; None where none does."""
    obeys = next((each.seconds for layout, each in found if rule(layout)), None)
    return None if obeys is None else obeys / found[0][1].seconds - 1


def at_least(found: Step) -> float:
    """Seconds of computing and idling alone: with all messages free, no step is faster."""
    parts = ("products", "attention", "small", "again", "head", "idle")
    return sum(found.parts[part] for part in parts)
