"""The engine room: starting ranks, watching them, recording what they send.

A function's way from a cell to its ranks and back:

 1. launching.py   checks the arguments, has pickling.py make bytes of the call, picks the launcher.
 2. launcher.py    takes a team of ranks that waits already, or asks for one, by
 3. client.py      the socket to the fork server, which started with the first launch;
 4. server.py      forks each rank, reports its end, and kills what is left of it.
 5. rank.py        joins the world (world.py), and waits. Now the launcher sends the call: it runs,
 6. hooks.py       sees each communication call: recorder.py has it in the rank's log,
 7. log.py         a file in memory; and when the function ends, its result is in another.
 8. member.py      the notebook's ends of one rank: a socket and four files. It reads them for
 9. supervise.py   the supervisor, which asks matching.py whether the calls still fit together,
10. run.py         and makes the Run, or post_mortem.py the error that explains.

Three words to know. A *team* (team.py) is the ranks of one launch, as the notebook's side has them:
which ended, where they stand, and their end. A *place* (place.py) is where ranks live, and all that
differs there: no walls, the walls around untrusted code, the wires of a VirtualNetwork. A launcher
hands its place to its fork server as a value: who never asks for walls or wires loads neither of
their rooms. And *messages* (messages.py) have one of three framings.

`python -m byhand` goes the same way: what it runs is a Program (program.py), a function that is
`__main__`.

A name below is loaded when somebody asks for it, torch with it: to read grades, or to say that
torch is missing, needs neither.
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
    "process.client": ("ForkClient",),
    "process.world": ("cleanup", "device", "setup"),
    "run": ("Run",),
    "trace.memory": ("held_bytes",),
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
