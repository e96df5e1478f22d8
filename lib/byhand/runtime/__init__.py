"""The engine room: starting ranks, watching them, recording what they send."""

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
from byhand.runtime.launch import (
    call,
    default_launcher,
    launch,
    set_default,
    shutdown,
    why_no_network,
)
from byhand.runtime.ledger import Event, Ledger
from byhand.runtime.network.virtual import Bytes, Traffic, VirtualNetwork
from byhand.runtime.process.launcher import Launcher
from byhand.runtime.process.request import PerRank
from byhand.runtime.process.world import cleanup, device, setup
from byhand.runtime.run import Run
from byhand.runtime.walls.prelude import StandIn

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
