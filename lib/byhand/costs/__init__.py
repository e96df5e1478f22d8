"""What a training step costs one rank, under any layout: bytes held, bytes sent, seconds. Pure.

model     Part, Model; gpt: a published model's parts
layout    Layout: degrees, order, and what each rank does with its memory; layouts: all of them
counting  held, sent: read this
moments   peak: the most bytes at one moment under FSDP2, with what is whole for it
machine   Machine: what a rank computes and holds, how its host's links carry
timing    seconds: by the schedule's simulation; estimate: by a formula

Every prediction has a counted twin: `held` beside run.peak_bytes, `sent` beside the ledger,
`seconds` beside a Timeline. The topics' own formulas are calls of these with all other axes 1.
"""

from byhand.costs.counting import held, sent
from byhand.costs.layout import Layout, layouts
from byhand.costs.machine import Machine
from byhand.costs.model import Model, Part, gpt
from byhand.costs.timing import estimate, seconds

__all__ = [
    "Layout",
    "Machine",
    "Model",
    "Part",
    "estimate",
    "gpt",
    "held",
    "layouts",
    "seconds",
    "sent",
]
