"""`launch`: run a function on fresh processes, one per rank, and get back what each returned."""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from byhand.runtime.errors import LaunchError
from byhand.runtime.launcher import Launcher
from byhand.runtime.run import Run

if TYPE_CHECKING:
    from byhand.runtime.network.virtual import VirtualNetwork
    from byhand.runtime.slurm.launcher import SlurmLauncher

VARIABLE = "BYHAND_LAUNCHER"
IDLE_SECONDS = 300.0  # after which a notebook that launches nothing keeps no process

_default: Launcher | None = None
_made: dict[str, Launcher] = {}


def named_launcher(name: str) -> Launcher:
    """ "local": ranks on this machine. "slurm": on the nodes of the allocation we are in.

    Each is made at first need, and then kept.

    Raises:
        ValueError: another name.
    """
    if name not in ("local", "slurm"):
        raise ValueError(f'launcher is "local" or "slurm", not {name!r}')
    if name not in _made:
        local = functools.partial(Launcher, idle_seconds=IDLE_SECONDS)
        _made[name] = local() if name == "local" else _slurm_launcher()
        atexit.register(_made[name].close)
    return _made[name]


def _slurm_launcher() -> SlurmLauncher:
    from byhand.runtime.slurm.launcher import SlurmLauncher

    return SlurmLauncher()


def default_launcher() -> Launcher:
    """The launcher that `launch` and `call` use; BYHAND_LAUNCHER in the environment names it."""
    global _default
    if _default is None:
        _default = named_launcher(os.environ.get(VARIABLE) or "local")
    return _default


def set_default(launcher: Launcher | None) -> Launcher | None:
    """Let `launch` and `call` use this launcher from now on; returns the one used so far."""
    global _default
    before, _default = _default, launcher
    return before


def shutdown() -> None:
    """End the fork servers that `launch` uses; the next launch starts another."""
    for launcher in {*_made.values(), *([_default] if _default else [])}:
        launcher.close()


def launch(
    fn: Callable[..., Any],
    world_size: int,
    args: Sequence[Any] = (),
    *,
    backend: str = "auto",
    deadline: float = 60.0,
    threads_per_rank: int = 1,
    network: VirtualNetwork | None = None,
    setup: bool = True,
    memory: bool = False,
    launcher: str | None = None,
) -> Run:
    """Run `fn(rank, world_size, *args)` on `world_size` fresh processes, one per rank.

    The function and its arguments travel by value, so both may come from a notebook cell. An
    argument PerRank([a, b, ...]) gives rank r only item r. With `setup`, each rank has joined the
    default process group before `fn` begins; without, `fn` calls setup and cleanup itself.
    `backend`: "auto", "gloo" or "nccl". With `network`, each rank lives on a host of that virtual
    network, and run.traffic counts the bytes. With `memory`, run.peak_bytes tells the most bytes
    of tensors that each rank held at once; small operations then take several times as long. With
    `launcher="slurm"` (or BYHAND_LAUNCHER=slurm in the environment) the ranks live on the nodes of
    the Slurm allocation that this process is in.
    No process outlives the call.

    Raises:
        ValueError: an argument makes no sense, or cannot travel; the message says which and why.
        RankError: a rank raised, or its process died. DeadlockError: the ranks' calls do not fit
            together. DeadlineError: ranks still run after `deadline` seconds.
        NetworkError: the kernel, or a missing tool, allows no virtual network here.
    """
    chosen = default_launcher() if launcher is None else named_launcher(launcher)
    options = {"backend": backend, "deadline": deadline, "threads_per_rank": threads_per_rank}
    options |= {"network": network, "setup": setup, "memory": memory}
    return chosen.launch(fn, world_size, args, **options)


@functools.cache
def why_no_network() -> str | None:
    """None where a virtual network can be made; otherwise one sentence on why not. It is tried."""
    try:
        from byhand.runtime.network.virtual import VirtualNetwork

        launch(_nothing, 2, network=VirtualNetwork(2, 1), deadline=30.0)
    except (LaunchError, ValueError) as error:  # ValueError: ranks on a cluster have the real one
        return str(error).splitlines()[0]
    return None


def _nothing(rank: int, world_size: int) -> None:
    """The program of a trial."""


def call(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)` in one fresh process; its value. Raises as `launch` does."""
    return default_launcher().launch(fn, 1, args, setup=False, alone=True).results[0]
