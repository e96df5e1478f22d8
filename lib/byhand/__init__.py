"""Distributed training, by hand: real ranks from a notebook cell.

from byhand import launch
run = launch(step, world_size=4)

Examples in docstrings begin where a lecture's cells do: with `import torch`, with
`import torch.distributed as dist`, with `from byhand import launch`, and with what their own
package offers.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

__all__ = [
    "DeadlockError",
    "PerRank",
    "RankError",
    "Run",
    "VirtualNetwork",
    "call",
    "cleanup",
    "device",
    "launch",
    "load_ipython_extension",
    "setup",
]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext byhand`: the `%%ranks` cell magic."""
    from byhand.tools.magic import load

    load(shell)


def __getattr__(name: str) -> Any:
    """The runtime's names, loaded with torch when the first of them is asked for; the version."""
    if name == "__version__":
        return importlib.metadata.version("byhand")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("byhand.runtime"), name)
