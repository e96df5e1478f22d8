"""Published training steps that state their layout, for fitting and for scoring. Pure.

A table beside this file, one row a run: model, layout, machine, software, seconds of a step.

Sources, by software: megatron-2021: Narayanan et al. 2021, arXiv:2104.04473, table 1 (seconds from
its formula 3). megatron-2022: Korthikanti et al. 2022, arXiv:2205.05198, table 5. fsdp:
mosaicml/llm-foundry, scripts/train/benchmarking/README.md. torchtitan: pytorch/torchtitan,
benchmarks. nemo: NVIDIA/NeMo, docs/source/performance. megatron-bridge:
NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary. automodel: NVIDIA-NeMo/Automodel,
docs/performance-summary.
Assumed where a source is silent: nothing is recomputed and gradients are summed in fp32 (nemo,
megatron-bridge), 8192 positions and micro-batches of a p-th of the batch (torchtitan).
Not scored, each with its reason in the table: experts, LoRA, fine-tuning, a row far off all its
neighbours.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byhand.costs.layout import Layout
from byhand.costs.model import Model, gpt


@dataclass(frozen=True)
class Published:
    """A run. seconds: of a step; gib: measured peak of memory, or None; left_out: why, or ""."""

    name: str
    software: str
    machine: str
    model: Model
    layout: Layout
    num_sequences: int
    precision: str
    compiled: bool
    reduce_dtype: str | None
    seconds: float
    gib: float | None
    left_out: str


def published() -> list[Published]:
    """Every row, those that are left out too."""
    with Path(__file__).with_suffix(".csv").open(newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def scored() -> list[Published]:
    """The rows that count."""
    return [row for row in published() if not row.left_out]


def beyond(layout: Layout, software: str) -> list[str]:
    """What of a layout no scored row of that software has: its seconds are extrapolated there.

    A degree larger than any row's; a way to recompute, a stage of ZeRO, an order that none has.
    """
    rows = [row.layout for row in scored() if row.software == software]
    if not rows:
        return []
    most = {name: max(getattr(at, name) for at in rows) for name in DEGREES}
    large = {name: getattr(layout, name) for name in DEGREES if getattr(layout, name) > most[name]}
    words = [f"{name} {number}" for name, number in large.items()]
    ways = {"zero": "ZeRO", "sequence": "sequence parallelism", "recompute": "recompute"}
    for name, way in {**ways, "order": "order"}.items():
        value = getattr(layout, name)
        if value not in {getattr(at, name) for at in rows}:
            words.append((way if value is True else f"{way} {value}") if value else f"no {way}")
    return words


DEGREES = "dp", "tp", "pp", "cp", "ep", "rows", "chunks"


def _row(row: dict[str, str]) -> Published:
    count = {name: int(value) for name, value in row.items() if value.isdecimal()}
    model = gpt(
        count["blocks"],
        count["features"],
        count["heads"],
        count["tokens"],
        count["positions"],
        num_key_heads=count["keys"],
        head_size=count["head_size"],
        width=count["width"],
        gated=bool(count["gated"]),
        tied=bool(count["tied"]),
    )
    names = "dp", "tp", "pp", "cp", "rows", "chunks", "zero"
    degrees: dict[str, Any] = {name: count[name] for name in names}
    layout = Layout(**degrees, sequence=bool(count["sequence"]), recompute=row["recompute"])
    return Published(
        row["id"],
        row["software"],
        row["machine"],
        model,
        layout,
        count["sequences"],
        row["precision"],
        bool(count["compiled"]),
        row["reduce_dtype"] or None,
        float(row["seconds"]),
        float(row["gib"]) if row["gib"] else None,
        row["left_out"],
    )
