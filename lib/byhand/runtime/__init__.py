"""The engine room: starting ranks, watching them, recording what they send."""

from byhand.runtime.default import (
    call,
    default_launcher,
    launch,
    set_default,
    shutdown,
    why_no_network,
)
from byhand.runtime.errors import (
    DeadlineError,
    DeadlockError,
    LaunchError,
    NetworkError,
    RankError,
    Report,
    SandboxError,
    TamperedError,
)
from byhand.runtime.launcher import Launcher
from byhand.runtime.ledger import Event, Ledger
from byhand.runtime.prelude import StandIn
from byhand.runtime.process_group import cleanup, device, setup
from byhand.runtime.request import PerRank
from byhand.runtime.run import Run
from byhand.runtime.virtual_network import Bytes, Traffic, VirtualNetwork

__all__ = [
    "Bytes",
    "DeadlineError",
    "DeadlockError",
    "Event",
    "LaunchError",
    "Launcher",
    "Ledger",
    "NetworkError",
    "PerRank",
    "RankError",
    "Report",
    "Run",
    "SandboxError",
    "StandIn",
    "TamperedError",
    "Traffic",
    "VirtualNetwork",
    "call",
    "cleanup",
    "default_launcher",
    "device",
    "launch",
    "set_default",
    "setup",
    "shutdown",
    "why_no_network",
]
