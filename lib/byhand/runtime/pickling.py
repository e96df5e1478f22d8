"""How a call travels to its ranks: a function, by value, and its arguments.

cloudpickle takes along what the function names of its notebook. Here is what it leaves, and a
sentence for what nothing can carry.
"""

from __future__ import annotations

import functools
import importlib
import io
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from byhand.words import an

_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_around: Callable[..., Any] | None = None  # what ranks call with the function and its arguments


class PerRank:
    """An argument of which rank r gets only item r."""

    def __init__(self, items: Sequence[Any]):
        self.items = list(items)


def set_around(wrapper: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Let ranks call wrapper(fn, *args) where fn(*args) is asked; returns the one used so far."""
    global _around
    before, _around = _around, wrapper
    return before


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


def dumps(value: Any) -> bytes:
    """The value by value, as cloudpickle writes it."""
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    """Takes along what cloudpickle leaves.

    Of a notebook's functools.cache and functools.singledispatch, what they were made of. Of what
    torch.compile gave, what it was given: a rank runs that, and compiles nothing. A lock arrives
    open: ranks share no memory that it could guard. A module that is an object, such as
    torch.backends.cudnn, by its name.
    """

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ == "__main__":
            return _cached, (value.__wrapped__, value.cache_parameters())
        if isinstance(value, FunctionType) and value.__module__ == "__main__":
            if hasattr(value, "_torchdynamo_orig_callable"):
                return _itself, (value._torchdynamo_orig_callable,)
            if hasattr(value, "registry") and hasattr(value, "dispatch"):
                return _dispatched, (dict(value.registry),)
        if type(value).__name__ == "OptimizedModule" and hasattr(value, "_orig_mod"):
            return _itself, (value._orig_mod,)
        if isinstance(value, _LOCKS):
            return threading.Lock if isinstance(value, _LOCKS[0]) else threading.RLock, ()
        is_odd = isinstance(value, ModuleType) and type(value) is not ModuleType
        if is_odd and sys.modules.get(value.__name__) is value:
            return importlib.import_module, (value.__name__,)
        return super().reducer_override(value)


def _cached(fn: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(fn)


def _dispatched(registry: dict[type, Callable[..., Any]]) -> Any:
    fn = functools.singledispatch(registry[object])
    for kind, implementation in registry.items():
        fn.register(kind, implementation)
    return fn


def _itself(value: Any) -> Any:
    return value


def _pickle(fn: Any, args: tuple) -> bytes:
    around = fn if _around is None else functools.partial(_around, fn)
    try:
        return dumps((around, args))
    except Exception as whole:
        for position, arg in enumerate(args):
            if (why := _why_not(arg)) is not None:
                what = f"argument {position}, {an(type(arg).__name__)},"
                raise ValueError(f"{what} cannot travel to another process: {why}") from None
        name = getattr(fn, "__name__", repr(fn))
        raise ValueError(
            f"the function {name} cannot travel to another process: {_cause(fn, whole)}"
        ) from None


def _why_not(value: Any) -> str | None:
    """Why a value cannot travel; None where it can."""
    try:
        dumps(value)
    except Exception as error:
        if isinstance(error.__cause__ or error, RecursionError):
            return (
                "one thing that it names leads to the next too often. Put functions that call each"
                " other in so long a chain into a file of their own, and import it"
            )
        return str(error) or type(error).__name__
    return None


def _cause(fn: Any, whole: Exception) -> str:
    """What a function names that keeps it from travelling, and what to do."""
    for name, value in _named(fn, set()):
        if (why := _why_not(value)) is not None:
            return (
                f"it uses {name}, {an(type(value).__name__)}: {why}. A function carries along the"
                f" names of the notebook that it uses: make {name} inside the function, or pass it"
                " plain data"
            )
    return _why_not(fn) or str(whole)


def _named(fn: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """What a notebook's function names, and what the notebook's functions that it names do."""
    code = getattr(fn, "__code__", None)
    if code is None or fn.__module__ != "__main__" or id(fn) in seen or len(seen) > 100:
        return
    seen.add(id(fn))
    cells = zip(code.co_freevars, fn.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in cells}
    found |= {name: fn.__globals__[name] for name in code.co_names if name in fn.__globals__}
    for name, value in found.items():
        if isinstance(value, FunctionType):
            yield from _named(value, seen)
        else:
            yield name, value
