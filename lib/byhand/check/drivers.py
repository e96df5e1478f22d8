"""What a rank does while a student's function runs: always, and where its driver asks for it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any

import torch

from byhand.check.requests import finished_requests

finished_sends = finished_requests  # which every part watches; a driver adds on_send


def nothing_by_luck(fn: Callable[..., Any], *args: Any) -> Any:
    """fn(*args), as every rank runs it that is launched inside `check.part`.

    Every request is waited for (see requests.py), and torch fills memory that nobody wrote: with
    nan, with the largest whole number, or with True. An answer that uses either is wrong each time
    then, and not by chance.
    """
    warnings.filterwarnings("ignore", message=".*deterministic")
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    with finished_requests():
        return fn(*args)


@contextmanager
def locked(*names: str) -> Iterator[None]:
    """These functions of the library, such as "byhand.collectives.broadcast", refuse to work."""
    functions = [resolve_name(name) for name in names]
    codes = [function.__code__ for function in functions]
    for function in functions:
        function.__code__ = _refused.__code__
    try:
        yield
    finally:
        for function, code in zip(functions, codes, strict=True):
            function.__code__ = code


def _refused(*_, **__):
    raise AssertionError("the library's function is locked here: this task asks for your own")
