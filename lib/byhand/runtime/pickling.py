"""How a call travels to its ranks, and what it returned travels back.

A function goes by value: cloudpickle takes along what it names of its notebook. Here is what
cloudpickle leaves, and a sentence for what nothing can carry. What the function returned comes with
its tensors on the CPU and without a history. Only they need torch, where there are any.
"""

from __future__ import annotations

import functools
import importlib
import io
import mmap
import os
import pickle
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import cloudpickle

from byhand.runtime.system import PORTABLE
from byhand.words import an

if TYPE_CHECKING:
    import torch

LARGE, ALIGNED = 1 << 20, 64  # bytes
_WORKERS = "__mp_main__"  # what a script is called in a process that multiprocessing spawned
_MAIN = ("__main__", _WORKERS)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_wrapper: Callable[..., Any] | None = None  # what ranks call with the function and its arguments


class PerRank:
    """An argument of which rank r gets only item r.

    >>> launch(lambda rank, world_size, item: item, 2, (PerRank(["a", "b"]),)).results
    ['a', 'b']
    """

    def __init__(self, items: Iterable[Any]):
        """items: in the order of the ranks.

        Raises:
            ValueError: they have no order, or there are none.
        """
        if not isinstance(items, Iterable) or isinstance(items, Mapping | Set):
            raise ValueError(
                f"PerRank takes a list, one item for each rank, not {an(type(items).__name__)}"
            )
        self.items = list(items)


def set_wrapper(wrapper: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Let ranks call wrapper(fn, *args) where fn(*args) is asked; returns the one used so far."""
    global _wrapper
    before, _wrapper = _wrapper, wrapper
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
    if _WORKERS in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules[_WORKERS])
    with io.BytesIO() as file:
        _CallPickler(file).dump(value)
        return file.getvalue()


def write(value: Any, fd: int) -> None:
    """On a rank: what a function returned, at the end of a file.

    A pickle, the bytes of the LARGE tensors and arrays in it, where these begin and how long they
    are, and how many there are.

    Raises:
        TypeError: it cannot be pickled.
    """
    import torch

    large: list[memoryview] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer is pickled with the rest; a large one goes behind it."""
        data = buffer.raw()
        if data.nbytes >= LARGE:
            large.append(data)
        return data.nbytes < LARGE

    try:
        with open(fd, "wb", closefd=False) as file, torch.inference_mode():
            pickler = _ResultPickler(file, buffer_callback=stays)
            pickler.dump(_plain(value))  # a functional collective's is inference's
            spans = []
            for data in large:
                spans += [-file.tell() % ALIGNED + file.tell(), data.nbytes]
                file.seek(spans[-2])
                file.write(data)
            file.write(struct.pack(f"<{len(spans)}QQ", *spans, len(large)))
    except Exception as error:
        what = f"the result, {an(type(value).__name__)},"
        raise TypeError(f"{what} cannot travel back to the notebook: {error}") from None


def read(fd: int, at: int) -> Any:
    """In the notebook: what `write` wrote from byte `at` of a file on.

    LARGE tensors lie in the file's own memory, which nobody else will write to: whoever keeps one
    keeps all of that rank's result.

    Raises:
        TypeError: it cannot be made anew here.
    """
    try:
        return _read(fd, at)
    except Exception as error:
        what = "the result cannot be made anew in the notebook, as tensors in lists and dicts can"
        raise TypeError(f"{what}: {type(error).__name__}: {error}") from None


def _read(fd: int, at: int) -> Any:
    end = os.fstat(fd).st_size
    (count,) = struct.unpack("<Q", os.pread(fd, 8, end - 8))
    if count == 0:
        with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as file, memoryview(file)[at:] as value:
            return pickle.loads(value)
    foot = os.pread(fd, 16 * count, end - 8 - 16 * count)
    whole = _mapped(fd, end)
    data = [whole[start : start + length] for start, length in struct.iter_unpack("<QQ", foot)]
    return pickle.loads(whole[at:], buffers=data)


def _mapped(fd: int, size: int) -> memoryview:
    """A file as memory that can be written to, which the file never hears of."""
    if PORTABLE:
        with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as file:
            return memoryview(bytearray(file))
    import torch  # whose maps keep no descriptor, as Python's do

    return torch.from_file(f"/proc/self/fd/{fd}", size=size, dtype=torch.uint8).numpy().data


class _CallPickler(cloudpickle.Pickler):
    """Takes along what cloudpickle leaves.

    Of a notebook's functools.cache and functools.singledispatch, what they were made of. Of what
    torch.compile gave, what it was given: a rank runs that, and compiles nothing. A lock arrives
    open: ranks share no memory that it could guard. A module that is an object, such as
    torch.backends.cudnn, by its name.
    """

    def reducer_override(self, value: Any) -> Any:
        """How to make such a value again; for all others what cloudpickle says."""
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ in _MAIN:
            return _cached, (value.__wrapped__, value.cache_parameters())
        if isinstance(value, FunctionType) and value.__module__ in _MAIN:
            if hasattr(value, "_torchdynamo_orig_callable"):
                return _itself, (value._torchdynamo_orig_callable,)
            if hasattr(value, "registry") and hasattr(value, "dispatch"):
                return _dispatched, (dict(value.registry),)
        if type(value).__name__ == "OptimizedModule" and hasattr(value, "_orig_mod"):
            return _itself, (value._orig_mod,)
        if isinstance(value, _LOCKS):
            return threading.Lock if isinstance(value, _LOCKS[0]) else threading.RLock, ()
        if isinstance(value, ModuleType) and type(value) is not ModuleType:
            name = value.__name__
            if sys.modules.get(name) is value:
                return importlib.import_module, (name,)
        return super().reducer_override(value)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A strided tensor's numbers, row by row: uint8 [numel * itemsize], a view if it can be."""
    import torch

    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # Of a lone number any stride is contiguous; the stride of a dimension put last is always 1.
    return plain.flatten().unsqueeze(-1).view(torch.uint8).flatten()


def _plain(value: Any) -> Any:
    """A result with plain tensors in its lists and dicts, also where parameters stood."""
    import torch

    if hasattr(value, "trigger_wait"):  # a functional collective's, that is still under way
        value = value.trigger_wait()
    if isinstance(value, torch.Tensor) and not hasattr(value, "__tensor_flatten__"):
        return value.detach().cpu()
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(value[key]) for key in value} if type(value) is dict else value


class _ResultPickler(cloudpickle.Pickler):
    """Of a tensor it takes the numbers, and not the storage around them."""

    def reducer_override(self, value: Any) -> Any:
        """How to make a plain tensor of its numbers; for all else what cloudpickle says."""
        import torch

        if type(value) is not torch.Tensor or value.layout is not torch.strided or value.is_nested:
            return super().reducer_override(value)
        plain = _plain(value)
        numbers: Any = as_bytes(plain).numpy() if plain.numel() else None
        data = None if numbers is None else pickle.PickleBuffer(numbers)
        return _tensor, (data, str(plain.dtype).removeprefix("torch."), tuple(plain.shape))


def _tensor(data: bytearray | None, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of the dtype of that name.

    By name, for to find a dtype pickle looks through every module: on a rank that copies all the
    pages they lie on.
    """
    import torch

    dtype = getattr(torch, name)
    flat = torch.empty(0, dtype=dtype) if data is None else torch.frombuffer(data, dtype=dtype)
    return flat.reshape(shape)


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
    wrapped = fn if _wrapper is None else functools.partial(_wrapper, fn)
    try:
        return dumps((wrapped, args))
    except Exception as whole:
        for position, arg in enumerate(args):
            if (why := _why_not(arg)) is not None:
                what = f"argument {position}, {an(type(arg).__name__)},"
                raise ValueError(f"{what} cannot travel to another process: {why}") from None
        name = getattr(fn, "__name__", repr(fn))
        why = _cause(fn) or str(whole)
        raise ValueError(f"the function {name} cannot travel to another process: {why}") from None


def why_not(value: Any) -> str | None:
    """Why a value cannot travel, and of a function, what that it names; None where it can."""
    return None if _why_not(value) is None else _cause(value)


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


def _cause(fn: Any) -> str | None:
    """What a function names that keeps it from travelling, and what to do."""
    for name, value in _named(fn, set()):
        if (why := _why_not(value)) is not None:
            return (
                f"it uses {name}, {an(type(value).__name__)}: {why}. A function carries along the"
                f" names of the notebook that it uses: make {name} inside the function, or pass it"
                " plain data"
            )
    return _why_not(fn)


def _named(fn: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """What a notebook's function names, and what the notebook's functions that it names do."""
    code = getattr(fn, "__code__", None)
    if code is None or fn.__module__ not in _MAIN or id(fn) in seen or len(seen) > 100:
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
