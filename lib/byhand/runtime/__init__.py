"""The engine room: starting ranks, watching them, recording what they send."""

from byhand.runtime.errors import (
    DeadlineError,
    DeadlockError,
    LaunchError,
    RankError,
    Report,
    SandboxError,
    TamperedError,
)
from byhand.runtime.launcher import (
    Launcher,
    call,
    default_launcher,
    launch,
    set_default,
    shutdown,
)
from byhand.runtime.ledger import Event, Ledger
from byhand.runtime.prelude import StandIn
from byhand.runtime.process_group import cleanup, device, setup
from byhand.runtime.request import PerRank
from byhand.runtime.run import Run

__all__ = [
    "DeadlineError",
    "DeadlockError",
    "Event",
    "LaunchError",
    "Launcher",
    "Ledger",
    "PerRank",
    "RankError",
    "Report",
    "Run",
    "SandboxError",
    "StandIn",
    "TamperedError",
    "call",
    "cleanup",
    "default_launcher",
    "device",
    "launch",
    "set_default",
    "setup",
    "shutdown",
]
