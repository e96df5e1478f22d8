"""The engine room: starting ranks, watching them, recording what they send.

A function's way from a cell to its ranks and back:

 1. launching.py   checks the arguments, pickles the call, and picks the launcher.
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
other launch loads their rooms. And a name below is loaded when somebody asks for it, torch with it:
to read grades, or to say that torch is missing, needs neither.
"""

from __future__ import annotations

import importlib
from typing import Any

_ROOMS = {  # by module: the names that this package gives
    "errors": (
        "DeadlineError",
        "DeadlockError",
        "LaunchError",
        "NetworkError",
        "RankError",
        "Report",
        "SandboxError",
        "TamperedError",
    ),
    "launching": (
        "PerRank",
        "call",
        "default_launcher",
        "launch",
        "set_default",
        "shutdown",
        "why_no_network",
    ),
    "launcher": ("Launcher",),
    "ledger": ("Event", "Ledger"),
    "process.world": ("cleanup", "device", "setup"),
    "run": ("Run",),
    "network.virtual": ("VirtualNetwork",),
    "walls.notebook": ("StandIn",),
}
_HOMES = {name: module for module, names in _ROOMS.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
