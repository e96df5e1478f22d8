"""Distributed training, by hand: real ranks from a notebook cell.

from byhand import launch
run = launch(step, world_size=4)
"""

from byhand.runtime import (
    DeadlockError,
    PerRank,
    RankError,
    Run,
    VirtualNetwork,
    call,
    cleanup,
    device,
    launch,
    setup,
)

__all__ = [
    "DeadlockError", "PerRank", "RankError", "Run", "VirtualNetwork", "call", "cleanup",
    "device", "launch", "load_ipython_extension", "setup",
]  # fmt: skip


def load_ipython_extension(shell: object) -> None:
    """`%load_ext byhand`: the `%%ranks` cell magic."""
    from byhand.tools.magic import load

    load(shell)
