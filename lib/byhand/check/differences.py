"""Say in plain words how one value differs from another.

Used by `byhand.check`; pure, and safe on values that a stranger's program returned: only exact
types are compared (`torch.Tensor`, int, float, str, bool, bytes, list, tuple, dict, None), so no
object can claim to be equal to everything.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from byhand.words import an, counted

PLAIN_TYPES = (Tensor, int, float, str, bool, bytes, list, tuple, dict, type(None))
NAN = (
    "There is a nan in it: from memory that nothing was put or received into, from inf - inf, "
    "or from 0/0?"
)
UNWRITTEN = "It holds {}, with which memory is filled that nothing was put or received into."
MOST_SHOWN = 8  # elements of a tensor, characters of a string in tens


def difference(
    got: Any, expected: Any, tolerance: float = 0.0, world_size: int | None = None
) -> list[str]:
    """Lines that say how `got` differs from `expected`; none when they are the same.

    Tensors must agree in shape, dtype and every element; numbers in type and value; lists,
    tuples and dicts in length, keys and every member. A list may stand for a tuple.
    `tolerance` allows |got - expected| <= tolerance * max(1, |expected|) for floating point, where
    `expected` is finite. Nothing is a nan, not even a nan.
    `world_size` lets a hint say "as many times too large as there are ranks".
    """
    path, lines = _first_difference(got, expected, tolerance, world_size)
    if not path:
        return lines
    whole = _both(got, expected) if len(path) == 1 and type(got) is not dict else []
    place = "".join(f"[{key!r}]" for key in path)
    return [*whole, f"first difference at {place}:", *(f"  {line}" for line in lines)]


def _first_difference(
    got: Any, expected: Any, tolerance: float, world_size: int | None
) -> tuple[list, list[str]]:
    """The keys on the way to the first member that differs, and how it does."""
    pairs: Iterable[tuple[Any, tuple[Any, Any]]]  # key, and both members
    if isinstance(got, np.generic):  # a judged answer's travel as plain numbers, too
        got = got.item()
    if type(got) not in PLAIN_TYPES:
        return [], [_foreign(got)]
    if isinstance(expected, list | tuple) and type(got) in (list, tuple):
        if len(got) != len(expected):
            lengths = (f", {counted(len(value), 'member')}" for value in (got, expected))
            return [], _both(got, expected, *lengths)
        pairs = enumerate(zip(got, expected, strict=True))
    elif isinstance(expected, dict) and type(got) is dict:
        if not all(map(_is_plain_key, got)) or set(got) != set(expected):
            return [], [
                f"got the keys      {', '.join(sorted(map(describe, got)))}",
                f"expected the keys {', '.join(sorted(map(describe, expected)))}",
            ]
        pairs = ((key, (got[key], expected[key])) for key in expected)
    else:
        return [], _values_differ(got, expected, tolerance, world_size)
    for key, (mine, theirs) in pairs:
        path, lines = _first_difference(mine, theirs, tolerance, world_size)
        if lines:
            return [key, *path], lines
    return [], []


def _is_plain_key(key: object) -> bool:
    if type(key) is tuple:
        return all(map(_is_plain_key, key))
    return type(key) in (str, int, bool, type(None))


def _values_differ(got: Any, expected: Any, tolerance: float, world_size: int | None) -> list[str]:
    if type(got) is not type(expected):
        return [f"got      {describe(got)}{_kind(got)}", f"expected {_kind(expected)[2:] or None}"]
    if isinstance(expected, Tensor):
        return _tensors_differ(got, expected, tolerance, world_size)
    if got == expected:
        return []
    hints = [NAN] if got != got else []
    if type(got) is float or (type(got) is int and max(abs(got), abs(expected)) < 2**53):
        mine, theirs = torch.tensor([[got], [expected]], dtype=torch.float64)
        if type(got) is float and not _wrong_elements(mine, theirs, tolerance):
            return []
        hints += _multiple(mine, theirs, world_size)
    return _both(got, expected) + hints


def _both(got: object, expected: object, got_more: str = "", expected_more: str = "") -> list[str]:
    return [f"got      {describe(got)}{got_more}", f"expected {describe(expected)}{expected_more}"]


def describe(value: Any) -> str:
    """A value in one short line: a tensor's first elements, the shape where it is not a row."""
    if type(value) is Tensor and (unusual := _unusual(value)):
        return f"<{unusual}>"
    if type(value) is Tensor:
        flat = value.detach().flatten()
        shown = ", ".join(_number(element) for element in flat[:MOST_SHOWN].tolist())
        rest = f", … {flat.numel()} elements" if flat.numel() > MOST_SHOWN else ""
        if value.dim() == 0:
            return f"{shown} (a tensor of shape [])"
        shape = "" if value.dim() == 1 else f" of shape {list(value.shape)}"
        return f"[{shown}{rest}]{shape}"
    if type(value) in (list, tuple):
        shown = ", ".join(describe(member) for member in value[:MOST_SHOWN])
        rest = f", … {counted(len(value), 'member')}" if len(value) > MOST_SHOWN else ""
        return f"[{shown}{rest}]" if type(value) is list else f"({shown}{rest})"
    text = repr(value) if type(value) in PLAIN_TYPES else f"<{type(value).__name__}>"
    return text if len(text) <= 10 * MOST_SHOWN else text[: 10 * MOST_SHOWN] + "…"


def _unusual(tensor: Tensor) -> str:
    """What a tensor is whose elements nobody can list; "" for an ordinary dense one."""
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.is_quantized:
        return "a quantized tensor"
    if tensor.is_meta:
        return "a tensor of the meta device, which holds no numbers"
    return "" if tensor.layout is torch.strided else f"a tensor of layout {tensor.layout}"


def _foreign(value: object) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return (
        f"got an object of type {name}, which cannot be compared: return plain data "
        "(torch.Tensor, int, float, str, bool, bytes, list, tuple, dict or None)"
    )


def _kind(value: object) -> str:
    """A comma and the type in words; nothing for None, which says it all."""
    if value is None:
        return ""
    name = "torch.Tensor" if isinstance(value, Tensor) else type(value).__name__
    return f", {an(name)}"


def _number(element: object) -> str:
    return f"{element:.10g}" if isinstance(element, float) else str(element)


def _tensors_differ(
    got: Tensor, expected: Tensor, tolerance: float, world_size: int | None
) -> list[str]:
    if unusual := _unusual(got):
        return [f"got {unusual}, expected an ordinary dense one"]
    got, expected = got.detach().cpu(), expected.detach().cpu()
    lines = _both(got, expected)
    if got.shape != expected.shape:
        lines.append(f"the shape is {list(got.shape)}, expected {list(expected.shape)}")
        if got.numel() == expected.numel():
            lines.append("The number of elements is right, only the shape is not.")
        return lines
    if got.dtype != expected.dtype:
        return [*lines, f"the dtype is {got.dtype}, expected {expected.dtype}"]
    wrong = _wrong_elements(got, expected, tolerance)
    if not wrong.any():
        return []
    index = wrong.nonzero()[0].tolist()
    first = _number(got[tuple(index)].item()), _number(expected[tuple(index)].item())
    if got.numel() > 1:
        lines.append(
            f"{int(wrong.sum())} of {wrong.numel()} elements differ, "
            f"the first at {index}: {first[0]}, expected {first[1]}"
        )
    if got.dtype is torch.bool:
        return lines
    return lines + _hint(got.flatten(), expected.flatten(), world_size)


def _wrong_elements(got: Tensor, expected: Tensor, tolerance: float) -> Tensor:
    if not expected.is_floating_point() or tolerance == 0:
        return got != expected
    near = (got - expected).abs() <= tolerance * expected.abs().clamp(min=1.0)
    return (got != expected) & ~(near & expected.isfinite())


def _hint(got: Tensor, expected: Tensor, world_size: int | None) -> list[str]:
    if got.is_complex() or not got.numel():
        return []
    if not got.is_floating_point() and (got == (most := torch.iinfo(got.dtype).max)).any():
        return [UNWRITTEN.format(most)] if not (expected == most).any() else []
    got, expected = got.double(), expected.double()
    if got.isnan().any():
        return [NAN]
    if not got.any():
        return ["Every element is 0: was anything added or received into this tensor?"]
    if lines := _multiple(got, expected, world_size):
        return lines
    if torch.equal(got.sort().values, expected.sort().values):
        return ["These are the right elements in another order."]
    return []


def _multiple(got: Tensor, expected: Tensor, world_size: int | None) -> list[str]:
    """A hint when one tensor is a whole multiple of the other."""
    if not got.any() or not expected.any():
        return []
    largest = expected.abs().argmax()
    ratio = (got[largest] / expected[largest]).item()
    grown = abs(ratio) >= 1
    large, small = (got, expected) if grown else (expected, got)
    factor = ratio if grown else 1 / ratio if ratio else 0.0
    near = 1e-9 * large.abs().max().item()
    if not 1.5 < factor < 1025 or not torch.allclose(large, round(factor) * small, 1e-9, near):
        return []
    factor = round(factor)
    if got.numel() == 1 and factor != world_size:
        return []  # one number is too easily a multiple of another
    ranks = ", and there are as many ranks" if factor == world_size else ""
    much, asked = (
        ("large", "is a sum where a mean is asked, or is a share added more than once?")
        if grown
        else ("small", "is a mean where a sum is asked, or is a share missing?")
    )
    return [f"Every element is {factor} times too {much}{ranks}: {asked}"]
