"""What a rank does while a student's function runs: always, and where its driver asks for it."""

import dis
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from pkgutil import resolve_name
from types import FunctionType
from typing import Any, NoReturn

import torch

from byhand.check.requests import finished_requests

# What differentiates by itself, for `locked`. Under torch.inference_mode() it records nothing, too.
AUTOGRAD = (
    "torch.autograd.backward",
    "torch.autograd.grad",
    "torch.autograd.forward_ad.make_dual",
    "torch.func.grad",
    "torch.func.vjp",
    "torch.func.jvp",
    "torch.func.jacfwd",
)

finished_sends = finished_requests  # which every part watches; a driver adds on_send


def nothing_by_luck(fn: Callable[..., Any], *args: Any) -> Any:
    """fn(*args), as every rank runs it that is launched inside `check.part`.

    Every request is waited for (see requests.py), and torch fills memory that nobody wrote: with
    nan, with the largest whole number, or with True. An answer that uses either is wrong each time
    then, and not by chance.
    """
    warnings.filterwarnings("ignore", message=".*deterministic")
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined] # is set
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with finished_requests():
            return fn(*args)
    except (TypeError, AttributeError) as error:
        if "NoneType" in str(error) and (called := _called_in(fn, error)):
            error.add_note(f"Did {' or '.join(called)} return None?")
        raise


def _called_in(driver: Callable[..., Any], error: BaseException) -> list[str]:
    """The notebook's functions that the driver names in the line where `error` came up in it."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame, line = frames[-1]
    if frame.f_code is not getattr(driver, "__code__", None):
        return []
    code = dis.get_instructions(frame.f_code)
    named = {str(one.argval) for one in code if one.positions and one.positions.lineno == line}
    functions = (name for name in named if isinstance(frame.f_globals.get(name), FunctionType))
    return sorted(n for n in functions if frame.f_globals[n].__module__ == "__main__")


@contextmanager
def locked(*names: str) -> Iterator[None]:
    """These functions, such as "byhand.collectives.broadcast" or torch's own, refuse to work.

    >>> import byhand.collectives
    >>> with locked("byhand.collectives.broadcast"):
    ...     byhand.collectives.broadcast(torch.ones(1))
    Traceback (most recent call last):
        ...
    AssertionError: a ready-made function is locked here: this task asks for your own
    """
    functions = [unwrap(resolve_name(name)) for name in names]  # what is inside a decorator
    codes = [function.__code__ for function in functions]
    for function in functions:
        function.__code__ = _refused.__code__
    try:
        yield
    finally:
        for function, code in zip(functions, codes, strict=True):
            function.__code__ = code


def _refused(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a ready-made function is locked here: this task asks for your own")
