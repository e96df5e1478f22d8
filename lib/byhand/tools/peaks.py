"""The most bytes that a rank's tensors hold in each step of a run of many, in one launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from byhand.runtime.trace.memory import HeldBytes


def peaks_of(steps: Iterable[Any]) -> Iterator[int]:
    """For each step that is taken from the iterator: the most bytes held during it."""
    with HeldBytes() as held:
        for _ in steps:
            yield held.peak_bytes
            held.peak_bytes = 0
