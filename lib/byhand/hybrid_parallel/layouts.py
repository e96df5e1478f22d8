"""Every way to lay out a world's ranks as dp x tp x pp, and what each is predicted to cost. Pure.

Pure: a model and layouts in, bytes and seconds out, by byhand.hybrid_parallel.cost's formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byhand.costs.layout import Layout, layouts
from byhand.costs.machine import Machine
from byhand.costs.model import Model
from byhand.hybrid_parallel.cost import Prediction, predict, sent_bytes
from byhand.pipeline_schedules.actions import Actions
from byhand.pipeline_schedules.orders import one_forward_one_backward

__all__ = ["Layout", "layouts", "predict_bytes", "predict_seconds", "schedule_of"]

ROWS = 2  # of a micro-batch
ONE_HOST = Machine()


def schedule_of(layout: Layout, num_sequences: int) -> Actions:
    """1F1B, in micro-batches of ROWS sequences; one whole batch where there is one stage."""
    m = max(1, num_sequences // layout.dp // ROWS) if layout.pp > 1 else 1
    return one_forward_one_backward(layout.pp, m)


def predict_bytes(
    model: Model, layouts: Sequence[Layout], num_sequences: int
) -> dict[Layout, dict[str, float]]:
    """What all ranks together send in a step under each layout, by group."""
    return {at: sent_bytes(model, at, num_sequences) for at in layouts}


def predict_seconds(
    model: Model,
    layouts: Sequence[Layout],
    num_sequences: int,
    seconds: float,
    software: Mapping[Layout, float],
    machine: Machine = ONE_HOST,
) -> dict[Layout, Prediction]:
    """How long a step takes under each layout, on that machine: see `cost.predict`."""
    n = num_sequences
    return {
        at: predict(model, at, machine, schedule_of(at, n), n, seconds, software[at])
        for at in layouts
    }
