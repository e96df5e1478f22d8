"""Fits the planner's constants to published steps, and says how far a fit misses unseen ones.

python tests/benchmarks/planner.py            errors of the constants as they stand
python tests/benchmarks/planner.py --fit      fits them again, and prints them with their intervals
python tests/benchmarks/planner.py --across   the same with another generation's constants, and
                                              with a fit that had not seen the model

A fit minimises the errors of log seconds, with less weight to the far ones (soft L1 at 2 %). Each
constant has a place where it is expected, and how firmly, as a factor: 42 rows of one
machine tell little of eight others. Some minutes on one core.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from dataclasses import replace
from itertools import chain

import numpy as np
from scipy.optimize import least_squares

from byhand.costs import Layout
from byhand.planner.models import named
from byhand.planner.published import Published, scored
from byhand.planner.runs import ANY
from byhand.planner.search import ORDERS, every, search
from byhand.planner.software import SOFTWARE, Software
from byhand.planner.step import ask, step

OLD, NEW = ("megatron-2021",), ("megatron-2022",)
FSDP, NEMO, BRIDGE = ("fsdp",), ("nemo",), ("megatron-bridge",)
TITAN, ASYNC = ("torchtitan", "torchtitan-async"), ("torchtitan-async",)
BF16, FP8 = ("h100", "bf16"), ("h100", "fp8")
Knob = tuple[tuple[str, ...], str, object, float, float]
# Which software, which constant, where it is expected, and within what factor (in logarithms).
FAMILIES: dict[str, list[Knob]] = {
    "Megatron on A100": [
        (OLD, "products", ("a100", "bf16"), 0.80, 0.1),
        (NEW, "products", ("a100", "bf16"), 0.85, 0.1),
        (OLD + NEW, "operand", "bf16", 4.5, 0.3),
        (OLD + NEW, "scores", None, 14, 0.4),
        (OLD + NEW, "tensor", None, 1.0, 0.3),
        (OLD + NEW, "hop", None, 3e-4, 0.7),
    ],
    "FSDP": [
        (FSDP, "products", ("a100", "bf16"), 0.80, 0.1),
        (FSDP, "products", BF16, 0.65, 0.2),
        (FSDP, "products", FP8, 0.70, 0.2),
        (FSDP, "attention", "a100", 0.35, 0.3),
        (FSDP, "attention", "h100", 0.20, 0.3),
        (FSDP, "operand", "bf16", 4.5, 0.3),
        (FSDP, "operand", "fp8", 6.0, 0.3),
        (FSDP, "traffic", None, 1.3, 0.3),
        (FSDP, "head_cost", None, 3.0, 0.5),
        (FSDP, "attention_backward", None, 3.0, 0.3),
        (FSDP, "hides_gradients", None, 0.4, 0.5),
        (FSDP, "loss", None, 22, 0.3),
        (FSDP, "step_seconds", None, 0.02, 0.5),
    ],
    "NeMo and Megatron-Bridge": [
        (NEMO, "products", FP8, 0.65, 0.3),
        (BRIDGE, "products", FP8, 0.70, 0.3),
        (NEMO, "attention", "h100", 0.32, 0.2),
        (BRIDGE, "attention", "h100", 0.34, 0.2),
        (NEMO + BRIDGE, "operand", "fp8", 4.0, 0.5),
        (NEMO + BRIDGE, "tensor", None, 0.4, 0.4),
        (NEMO + BRIDGE, "hides_gradients", None, 0.85, 0.2),
    ],
    "torchtitan": [
        (TITAN, "products", BF16, 0.55, 0.2),
        (TITAN, "products", FP8, 0.57, 0.2),
        (TITAN, "attention", "h100", 0.23, 0.3),
        (TITAN, "products", ("h200", "fp8"), 0.65, 0.2),
        (TITAN, "attention", "h200", 0.26, 0.2),
        (TITAN, "operand", "fp8", 6.0, 0.3),
        (TITAN, "eager", None, 2.5, 0.4),
        (("torchtitan",), "tensor", None, 1.0, 0.3),
        (ASYNC, "tensor", None, 0.5, 0.3),
        (TITAN, "selective", None, 0.4, 0.4),
        (TITAN, "ring_cost", None, 0.35, 0.5),
        (TITAN, "hides_gradients", None, 0.85, 0.2),
    ],
}
FAR = 0.02  # an error's weight falls from here


def turned(knobs: list[Knob], values: np.ndarray) -> dict[str, Software]:
    """SOFTWARE with these constants."""
    found = dict(SOFTWARE)
    for (names, constant, key, _, _), value in zip(knobs, values, strict=True):
        for name in names:
            old = getattr(found[name], constant)
            new = float(value) if key is None else {**old, key: float(value)}
            found[name] = replace(found[name], **{constant: new})
    return found


def error(row: Published, software: dict[str, Software]) -> float:
    """Predicted over published seconds, less 1."""
    given = {"precision": row.precision, "compiled": row.compiled, "reduce_dtype": row.reduce_dtype}
    asked = row.model, row.layout, row.machine, row.num_sequences
    return step(*asked, software=software[row.software], **given).seconds / row.seconds - 1


def fitted(knobs: list[Knob], rows: list[Published]) -> tuple[np.ndarray, np.ndarray]:
    """The constants, and the logarithm of the factor within which two thirds of fits would lie."""
    start = np.log([knob[3] for knob in knobs])
    firm = np.array([knob[4] for knob in knobs])

    def misses(x: np.ndarray) -> np.ndarray:
        software = turned(knobs, np.exp(x))
        far = np.array([np.log1p(error(row, software)) / FAR for row in rows])
        soft = np.sign(far) * np.sqrt(2 * (np.sqrt(1 + far**2) - 1))
        return np.concatenate([soft, (x - start) / firm])

    found = least_squares(misses, start)
    spread = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    return np.exp(found.x), spread


def rows_of(knobs: list[Knob], rows: list[Published]) -> list[Published]:
    """Those of the software that the knobs turn."""
    names = set(chain.from_iterable(knob[0] for knob in knobs))
    return [row for row in rows if row.software in names]


def report(rows: list[Published], software: dict[str, Software], worst: int = 3) -> None:
    """Mean, bias and worst, by software and machine."""
    found = defaultdict(list)
    for row in rows:
        found[row.software, row.machine, row.precision].append((error(row, software), row.name))
    for key, errors in sorted(found.items()):
        far = [abs(each) for each, _ in errors]
        bias = sum(each for each, _ in errors) / len(errors)
        mean, most = sum(far) / len(far), max(far)
        print(
            f"{' '.join(key):34} {len(far):3} rows  {mean:6.1%} mean {bias:+7.1%} bias {most:6.1%}"
        )
        for each, name in sorted(errors, key=lambda pair: -abs(pair[0]))[:worst]:
            print(f"{'':38} {each:+7.1%}  {name}")


def fit(rows: list[Published]) -> None:
    """Every family, and what comes out."""
    for family, knobs in FAMILIES.items():
        ours = rows_of(knobs, rows)
        values, spread = fitted(knobs, ours)
        print(f"\n{family}: {len(ours)} rows, {len(knobs)} constants")
        for (names, constant, key, _, _), value, each in zip(knobs, values, spread, strict=True):
            label = f"{names[0]} {constant} {'' if key is None else key}"
            print(f"    {label:52} {value:9.4g}  ± {each:5.0%}")
        report(ours, turned(knobs, values))


def across(rows: list[Published]) -> None:
    """Each model of each family left out in turn, predicted by a fit to the others."""
    for family, knobs in FAMILIES.items():
        ours = rows_of(knobs, rows)
        left = defaultdict(list)
        for row in ours:
            left[row.model.parts[0].split, len(row.model.parts), row.machine].append(row)
        missed = []
        for unseen in left.values():
            values, _ = fitted(knobs, [row for row in ours if row not in unseen])
            missed += [abs(error(row, turned(knobs, values))) for row in unseen]
        print(f"{family}: {len(left)} fits, {np.mean(missed):.1%} mean, {max(missed):.1%} worst")


def unseen(rows: list[Published]) -> None:
    """Each generation predicted with the constants of another one, as if it were not known."""
    for name, other in UNSEEN:
        borrowed = SOFTWARE | {name: SOFTWARE[other]}
        ours = [row for row in rows if row.software == name and knows(SOFTWARE[other], row)]
        missed = [error(row, borrowed) for row in ours]
        mean, bias = np.mean(np.abs(missed)), np.mean(missed)
        print(f"{name} by {other}: {len(ours)} rows, {mean:.1%} mean, {bias:+.1%} bias")


def knows(software: Software, row: Published) -> bool:
    """Whether it has constants for the row's machine and precision."""
    return (row.machine.partition("-")[0], row.precision) in software.products


UNSEEN = (
    ("megatron-2021", "megatron-2022"),
    ("megatron-2022", "megatron-2021"),
    ("nemo", "megatron-bridge"),
    ("megatron-bridge", "nemo"),
    ("torchtitan", "fsdp"),
    ("fsdp", "torchtitan"),
)


def searching() -> None:
    """A trillion parameters on 16 384 GPUs: how many layouts, how many fit, in how many seconds."""
    asked = named("gpt-1t"), "a100-80gb", 16384, 3072
    ours = SOFTWARE["megatron-2022"]
    for what, software in (("as it runs", ours), ("all axes", replace(ours, runs=ANY))):
        case = ask(asked[0], [Layout()], *asked[1:2], asked[3], "bf16", software)
        number = sum(len(every(case, asked[2], order, {})) for order in ORDERS)
        seconds = []
        for _ in range(5):
            start = time.process_time()
            found = search(*asked, software=software)
            seconds.append(time.process_time() - start)
        told = f"{np.median(seconds):.2f} s of one core, median of 5"
        print(f"{what}: {number} layouts, {len(found)} fit: {told}")
    start = time.process_time()
    for layout, _ in found[:1000]:
        step(asked[0], layout, asked[1], asked[3], software=ours)
    print(f"one after the other: {time.process_time() - start:.2f} ms each")


def main() -> None:
    """What the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--across", action="store_true")
    asked = parser.parse_args()
    rows = scored()
    if asked.fit:
        fit(rows)
    if asked.across:
        unseen(rows)
        across(rows)
    if not asked.fit and not asked.across:
        report(rows, SOFTWARE)
        searching()


if __name__ == "__main__":
    main()
