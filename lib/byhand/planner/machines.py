"""The machines one can ask for: what data sheets say of a GPU, its host and its links. Pure.

byhand.costs.Machine holds rates that are reached. This holds the rates that are written on the
box; what share of them software reaches is byhand.planner.software's.

Sources: NVIDIA's data sheets (operations without sparsity; NVLink in one direction); network: a
card of 200 Gb/s for each A100 and of 400 Gb/s for each H100, as in DGX hosts and in the published
tables that name theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NVLINK = 0.86  # of what is written, that a large collective within a host reaches: set, not fitted
CARD = 0.79  # the same of a network card
ALPHA = 2.5e-6  # seconds a message: a ring of n ranks has n - 1 of them, one after the other
GIB = 2**30  # a GPU sold as "80 GB" has 80 of these


@dataclass(frozen=True)
class Machine:
    """A kind of GPU in hosts of `ranks_per_host`, each rank with a network card of its own.

    kind: what the constants of software are fitted by. peak: operations a second by precision.
    memory: bytes; memory_rate: bytes read or written in a second. inside, between: bytes a second
    that a rank sends over NVLink, and over its card.

    >>> machine = MACHINES["h100-80gb"]
    >>> machine.peak["bf16"], machine.ranks_per_host
    (989000000000000.0, 8)
    """

    name: str
    kind: str
    peak: Mapping[str, float]
    memory: float
    memory_rate: float
    inside: float
    between: float
    ranks_per_host: int = 8


A100 = {"bf16": 312e12}
H100 = {"bf16": 989e12, "fp8": 1979e12}

MACHINES = {
    machine.name: machine
    for machine in (
        Machine("a100-80gb", "a100", A100, 80 * GIB, 2.039e12, 300e9, 25e9),
        Machine("a100-40gb", "a100", A100, 40 * GIB, 1.555e12, 300e9, 25e9),
        Machine("h100-80gb", "h100", H100, 80 * GIB, 3.35e12, 450e9, 50e9),
        Machine("h100-96gb", "h100", H100, 94 * GIB, 2.4e12, 450e9, 50e9),  # HBM2e, held to 500 W
        Machine("h200", "h200", H100, 140 * GIB, 4.8e12, 450e9, 50e9),
    )
}
