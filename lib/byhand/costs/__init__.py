"""What a training step costs one rank, under any layout: bytes held, bytes sent. Pure.

model    Part, Model; gpt: a published model's parts
layout   Layout: degrees, order, and what each rank does with its memory; layouts: all of them
step     held, sent: read this

Every prediction has a counted twin: `held` beside run.peak_bytes, `sent` beside the ledger. The
topics' own formulas are calls of these with all other axes 1.
"""

from byhand.costs.layout import Layout, layouts
from byhand.costs.model import Model, Part, gpt
from byhand.costs.step import held, sent

__all__ = ["Layout", "Model", "Part", "gpt", "held", "layouts", "sent"]
