"""Another planner's seconds of the published rows, as a benchmark wrote them. Pure.

llm-analysis is no part of the course's installation, so peer.json keeps what it said, with its
version, the day and the command that writes it again: tests/benchmarks/planner_peer.py --write.
It was told which share of the peak is reached, the one that suits it best for each software,
kind of GPU and precision, as the planner's constants are fitted to the same rows. Rows with cp are
left out, which it does not know; nor does it know a pipeline's bubble, and its FP8 is bf16 on a GPU
of twice the peak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from byhand.planner.machines import MACHINES
from byhand.planner.published import Published, scored

FILE = Path(__file__).with_suffix(".json")


def kept() -> dict[str, Any]:
    """What it is called, when and by which command it ran, its shares, its seconds by row."""
    return json.loads(FILE.read_text())


def rows() -> list[Published]:
    """Those that it was asked for, a family after the other."""
    return sorted((row for row in scored() if row.layout.cp == 1), key=family)


def family(row: Published) -> str:
    """What shares one efficiency: software, kind of GPU, precision."""
    return f"{row.software}, {MACHINES[row.machine].kind.upper()}, {row.precision.upper()}"


def missed(given: Sequence[Published], seconds: Iterable[float]) -> tuple[float, float]:
    """The mean and the worst error of these seconds on these rows."""
    far = [abs(each / row.seconds - 1) for row, each in zip(given, seconds, strict=True)]
    return sum(far) / len(far), max(far)
