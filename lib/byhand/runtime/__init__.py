"""The engine room: starting ranks, watching them, recording what they send.

A function's way from a cell to its ranks and back:

 1. launch.py      checks the arguments, pickles the call, and picks the launcher.
 2. launcher.py    takes a team of ranks that waits already, or asks for one, by
 3. client.py      the socket to the fork server, which started with the first launch;
 4. server.py      forks each rank, reports its end, and kills what is left of it.
 5. rank.py        joins the world (world.py), and waits. Now the launcher sends the call: it runs,
 6. hooks.py       sees each communication call: recorder.py has it in the rank's log,
 7. log.py         a file in memory; and when the function ends, the rank replies.
 8. member.py      the notebook's ends of one rank: it reads the log and the reply for
 9. supervise.py   the supervisor, which asks matching.py whether the calls still fit together,
10. run.py         and makes the Run, or post_mortem.py the error that explains.

Walls (untrusted code) and a VirtualNetwork are values that a launcher hands to its fork server: no
other launch loads their rooms.
"""

from __future__ import annotations

from typing import Any

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
    PerRank,
    call,
    default_launcher,
    launch,
    set_default,
    shutdown,
    why_no_network,
)
from byhand.runtime.launcher import Launcher
from byhand.runtime.ledger import Event, Ledger
from byhand.runtime.process.world import cleanup, device, setup
from byhand.runtime.run import Run

__all__ = [
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


def __getattr__(name: str) -> Any:
    """What ordinary launches do without: loaded when somebody names it."""
    if name == "VirtualNetwork":
        from byhand.runtime.network import virtual as room
    elif name == "StandIn":
        from byhand.runtime.walls import notebook as room
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(room, name)
