"""What if a rank dies, or lives and is wrong or slow.

interval     how often to save: Young, Daly, and a year simulated. Pure: read this first
agreement    which rank's numbers differ from the others', and whose are none
waiting      who waits for whom in a ledger: the straggler. Pure
neighbour    a neighbour's memory as checkpoint
disk         a disk that forgets what was not synced, when the power goes: for trying saves. Pure
monitor      a run's numbers for TensorBoard
places       which box of which weight a tensor of a split model is
training     a run that goes on from its checkpoint, in any layout
lab          what lecture 16 runs and draws

Checkpoints themselves are byhand.checkpoint.
"""

from byhand.fault_tolerance.agreement import differing, fingerprint, not_finite
from byhand.fault_tolerance.disk import Disk, PowerCut
from byhand.fault_tolerance.interval import (
    RATES,
    Times,
    best,
    between,
    daly,
    goodput,
    simulate,
    young,
)
from byhand.fault_tolerance.monitor import Monitor
from byhand.fault_tolerance.neighbour import Neighbour
from byhand.fault_tolerance.waiting import stragglers, waits

__all__ = [
    "RATES",
    "Disk",
    "Monitor",
    "Neighbour",
    "PowerCut",
    "Times",
    "best",
    "between",
    "daly",
    "differing",
    "fingerprint",
    "goodput",
    "not_finite",
    "simulate",
    "stragglers",
    "waits",
    "young",
]
