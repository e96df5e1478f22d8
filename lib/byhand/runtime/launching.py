"""`launch`: run a function on fresh processes, one per rank, and get back what each returned.

What is asked is checked here, for every launcher: on this machine, behind walls, on the nodes of a
cluster.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byhand.runtime.errors import LaunchError
from byhand.runtime.launcher import Launcher
from byhand.runtime.pickling import PerRank, pickled
from byhand.runtime.run import Options, Run
from byhand.runtime.system import check_backend, is_number, whole_number
from byhand.words import an, counted

if TYPE_CHECKING:
    from byhand.runtime.network.virtual import VirtualNetwork
    from byhand.runtime.slurm.launcher import SlurmLauncher

VARIABLE = "BYHAND_LAUNCHER"
IDLE_SECONDS = 300.0  # after which a notebook that launches nothing keeps no process

_default: Launcher | None = None
_made: dict[str, Any] = {}  # a Launcher, or a SlurmLauncher, which can do what is used here


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
        atexit.register(_made[name].leave)
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
    No process outlives the call. The deadline is counted from when the call has been pickled and
    the fork server, which the first launch starts, has imported torch.

    Raises:
        ValueError: an argument makes no sense, cannot travel, or asks for more ranks than this
            machine has room for (BYHAND_MAX_RANKS allows them); the message says which and why.
        RankError: a rank raised, or its process died. DeadlockError: the ranks' calls do not fit
            together. DeadlineError: ranks still run after `deadline` seconds.
        NetworkError: the kernel, or a missing tool, allows no virtual network here.

    >>> def step(rank, world_size):
    ...     total = torch.tensor(rank)
    ...     dist.all_reduce(total)
    ...     return int(total)
    >>> launch(step, 4).results
    [6, 6, 6, 6]
    """
    chosen = default_launcher() if launcher is None else named_launcher(launcher)
    options = {"backend": backend, "deadline": deadline, "threads_per_rank": threads_per_rank}
    options |= {"network": network, "setup": setup, "memory": memory}
    return launch_on(chosen, fn, world_size, args, **options)


def launch_on(
    launcher: Launcher,
    fn: Callable[..., Any],
    world_size: int,
    args: Sequence[Any] = (),
    **options: Any,
) -> Run:
    """As launch, on this launcher; `options` are fields of Options."""
    world_size = whole_number("world_size", world_size)
    threads = whole_number("threads_per_rank", options.get("threads_per_rank", 1))
    asked = Options(**{**options, "threads_per_rank": threads})
    check_arguments(fn, world_size, args, asked)
    asked = replace(asked, deadline=float(asked.deadline))
    return launcher.run(world_size, asked, lambda: pickled(fn, world_size, args))


@functools.cache
def why_no_network() -> str | None:
    """None where a virtual network can be made; otherwise one sentence on why not. It is tried."""
    try:
        from byhand.runtime.network.virtual import VirtualNetwork

        launch(lambda *_: None, 2, network=VirtualNetwork(2, 1), deadline=30.0)
    except (LaunchError, ValueError) as error:  # ValueError: ranks on a cluster have the real one
        return str(error).splitlines()[0]
    return None


def call(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)` in one fresh process; its value. Raises as `launch` does.

    >>> call(pow, 2, 10)
    1024
    """
    return launch_on(default_launcher(), fn, 1, args, setup=False, alone=True).results[0]


def check_arguments(fn: Any, world_size: int, args: Any, options: Options) -> None:
    """Refuse what makes no launch.

    Raises:
        ValueError: an argument makes no sense; the sentence says which and why.
        LaunchError: this process is itself a rank.
    """
    if "BYHAND_WORLD_SIZE" in os.environ:
        raise LaunchError(
            "launch was called on a rank, and ranks start no others. (A program that calls launch "
            "runs with plain python: python -m byhand has started its ranks already.)"
        )
    if not callable(fn):
        raise ValueError(f"launch runs a function; {fn!r} is {an(type(fn).__name__)}")
    if any(map(_is_async, (fn, type(fn).__call__))):
        raise ValueError(
            f"launch awaits nothing, and {getattr(fn, '__name__', fn)} is an async function: give"
            " launch a plain one, which may call asyncio.run itself"
        )
    if not isinstance(args, (list, tuple)):
        raise ValueError(
            f"args is a tuple of arguments, not {an(type(args).__name__)}; "
            "for one argument x write args=(x,)"
        )
    check_backend(options.backend)
    deadline = options.deadline
    if not is_number(deadline) or not deadline > 0:
        raise ValueError(f"deadline is a positive number of seconds, not {deadline!r}")
    if options.network is not None:
        _check_network(options.network, world_size)
    for position, arg in enumerate(args):
        if isinstance(arg, PerRank) and len(arg.items) != world_size:
            raise ValueError(
                f"argument {position} has {counted(len(arg.items), 'item')} for"
                f" {counted(world_size, 'rank')}: "
                "PerRank takes one per rank"
            )


def _is_async(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)


def _check_network(network: Any, world_size: int) -> None:
    if not hasattr(network, "ranks_per_host"):
        raise ValueError(f"network is None or a VirtualNetwork, not {network!r}")
    if network.world_size != world_size:
        hosts = f"{counted(network.hosts, 'host')} × {counted(network.ranks_per_host, 'rank')}"
        raise ValueError(f"{hosts} = {network.world_size} is not world_size {world_size}")
