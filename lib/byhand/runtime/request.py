"""What a launch asks of its ranks: arguments that make sense, and travel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from byhand.runtime.errors import LaunchError
from byhand.words import counted

if TYPE_CHECKING:
    from byhand.runtime.network.virtual import VirtualNetwork


class PerRank:
    """An argument of which rank r gets only item r."""

    def __init__(self, items: Sequence[Any]):
        self.items = list(items)


@dataclass(frozen=True)
class Options:
    """How ranks run a function, as `byhand.launch` says; with `alone` it is called as fn(*args)."""

    backend: str = "auto"
    deadline: float = 60.0
    threads_per_rank: int = 1
    network: VirtualNetwork | None = None
    setup: bool = True
    memory: bool = False
    alone: bool = False


def check_arguments(fn: Any, world_size: Any, args: Any, options: Options) -> None:
    """Refuse what makes no launch.

    Raises:
        ValueError: an argument makes no sense; the sentence says which and why.
        LaunchError: this process is itself a rank.
    """
    if "BYHAND_WORLD_SIZE" in os.environ:
        raise LaunchError("launch was called on a rank; only the notebook starts ranks")
    if not callable(fn):
        raise ValueError(f"launch runs a function; {fn!r} is a {type(fn).__name__}")
    threads = options.threads_per_rank
    for name, value in (("world_size", world_size), ("threads_per_rank", threads)):
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} is a whole number of at least 1, not {value!r}")
    if not isinstance(args, (list, tuple)):
        raise ValueError(
            f"args is a tuple of arguments, not a {type(args).__name__}; "
            "for one argument x write args=(x,)"
        )
    deadline = options.deadline
    if type(deadline) not in (int, float) or not deadline > 0:
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


def _check_network(network: Any, world_size: int) -> None:
    if not hasattr(network, "ranks_per_host"):
        raise ValueError(f"network is None or a VirtualNetwork, not {network!r}")
    if network.world_size != world_size:
        hosts = f"{counted(network.hosts, 'host')} × {counted(network.ranks_per_host, 'rank')}"
        raise ValueError(f"{hosts} = {network.world_size} is not world_size {world_size}")


def pickled(fn: Any, world_size: int, args: Sequence[Any]) -> list[bytes]:
    """The call as bytes, by rank; the same object for all ranks if no argument is PerRank.

    Raises:
        ValueError: the function or an argument cannot travel to another process; says which.
    """
    if not any(isinstance(arg, PerRank) for arg in args):
        return [_pickle(fn, tuple(args))] * world_size
    return [
        _pickle(fn, tuple(a.items[rank] if isinstance(a, PerRank) else a for a in args))
        for rank in range(world_size)
    ]


def _pickle(fn: Any, args: tuple) -> bytes:
    try:
        return cloudpickle.dumps((fn, args))
    except Exception as whole:
        for position, arg in enumerate(args):
            try:
                cloudpickle.dumps(arg)
            except Exception as error:
                kind = type(arg).__name__
                raise ValueError(
                    f"argument {position}, a {kind}, cannot travel to another process: {error}"
                ) from None
        name = getattr(fn, "__name__", repr(fn))
        raise ValueError(
            f"the function {name} cannot travel to another process: {whole}. It carries along "
            "the names of the notebook that it uses; use plain data, or make the object inside it"
        ) from None
