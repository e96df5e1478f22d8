"""Tensors and plain data as bytes and back, without pickle.

What a sandboxed rank returns reaches the judge only through this codec, so decoding never runs
anything the sender chose: it builds None, bool, int, float, str, bytes, list, tuple, dict and
torch.Tensor, of exactly those types, and checks every length before it allocates.

Layout: 8 bytes, the length of a JSON header; the header; then the raw bytes of all tensors and
bytes objects, one after the other, in the header's order.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import torch

from byhand.runtime.pickling import as_bytes

MAX_DEPTH = 32
MAX_BYTES = 1 << 30
MAX_HEADER = 4 << 20  # parsed, it takes some fifty times that
MAX_DIGITS = 400
MAX_DIMENSIONS = 16
MAX_ALIKE = 100  # keys of one dict with the same hash, each of which is compared with the others

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
        torch.complex64,
        torch.complex128,
    )
}


class CodecError(ValueError):
    """A value that cannot travel, or bytes that are no value."""


def encode(value: object) -> bytes:
    """Plain data and tensors as bytes.

    Raises:
        CodecError: the value, or something inside it, is of another type; the message says where.
    """
    blobs: list[bytes] = []
    header = json.dumps(_pack(value, blobs, "the value", 0)).encode()
    if len(header) > MAX_HEADER - 8:
        raise CodecError(f"its lists and numbers take {len(header):,} bytes; return tensors")
    return b"".join([len(header).to_bytes(8, "big"), header, *blobs])


def decode(data: bytes) -> object:
    """The value that `encode` turned into `data`.

    Raises:
        CodecError: the bytes are malformed, too deep or too large.
    """
    if len(data) > MAX_BYTES:
        raise CodecError(f"{len(data)} bytes are more than the {MAX_BYTES} allowed")
    try:
        end = 8 + int.from_bytes(data[:8], "big")
        if end > MAX_HEADER:
            raise ValueError(f"lists and numbers of {end} bytes; send tensors")
        header = json.loads(data[8:end])
        value, used = _unpack(header, memoryview(data), end, 0)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, RuntimeError) as error:
        raise CodecError(f"malformed value: {error}") from None
    if used != len(data):
        raise CodecError(f"malformed value: {len(data) - used} bytes left over")
    return value


def _pack(value: Any, blobs: list[bytes], where: str, depth: int) -> list:
    if depth > MAX_DEPTH:
        raise CodecError(f"{where} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if value is None or kind in (bool, str):
        if kind is str and any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
            raise CodecError(f"{where} holds half a character")
        return ["v", value]
    if kind is int or kind is float:
        if kind is int and abs(value) >= 10**MAX_DIGITS:
            raise CodecError(f"{where} is a number of more than {MAX_DIGITS} digits")
        return [kind.__name__, repr(value)]
    if kind is bytes:
        blobs.append(value)
        return ["bytes", len(value)]
    if kind in (list, tuple, torch.Size):
        name = "list" if kind is list else "tuple"
        items = enumerate(value)
        return [name, [_pack(item, blobs, f"{where}[{i}]", depth + 1) for i, item in items]]
    if kind is dict:
        pairs = [
            (
                _pack(key, blobs, f"a key of {where}", depth + 1),
                _pack(item, blobs, f"{where}[{key!r}]", depth + 1),
            )
            for key, item in value.items()
        ]
        return ["dict", pairs]
    if isinstance(value, torch.Tensor):
        return _pack_tensor(value, blobs, where)
    raise CodecError(f"{where} is a {kind.__name__}; only tensors and plain data can be returned")


def _pack_tensor(value: torch.Tensor, blobs: list[bytes], where: str) -> list:
    name = str(value.dtype).removeprefix("torch.")
    if name not in _DTYPES or value.layout != torch.strided or value.is_meta or value.is_nested:
        raise CodecError(f"{where} is a {value.layout} tensor of {value.dtype}, not a plain one")
    if value.dim() > MAX_DIMENSIONS:
        raise CodecError(f"{where} is a tensor of {value.dim()} dimensions")
    with torch.inference_mode():  # what a functional collective still waits for may be inference's
        blobs.append(as_bytes(value.cpu()).numpy().tobytes() if value.numel() else b"")
    return ["tensor", name, list(value.shape)]


def _unpack(node: list, data: memoryview, at: int, depth: int) -> tuple[object, int]:
    """One header node -> its value and where the next blob begins."""
    if depth > MAX_DEPTH:
        raise CodecError(f"nested more than {MAX_DEPTH} deep")
    kind = node[0]
    if kind == "v" and (node[1] is None or type(node[1]) in (bool, str)):
        if type(node[1]) is str:
            node[1].encode()  # half a character raises
        return node[1], at
    if kind in ("int", "float"):
        return _number(kind, node[1]), at
    if kind == "bytes":
        return bytes(_take(data, at, node[1])), at + node[1]
    if kind in ("list", "tuple"):
        items = []
        for child in node[1]:
            item, at = _unpack(child, data, at, depth + 1)
            items.append(item)
        return (items if kind == "list" else tuple(items)), at
    if kind == "dict":
        pairs = []
        for key_node, item_node in node[1]:
            key, at = _unpack(key_node, data, at, depth + 1)
            item, at = _unpack(item_node, data, at, depth + 1)
            pairs.append((key, item))
        return _dict(pairs), at
    if kind == "tensor":
        return _unpack_tensor(node, data, at)
    raise CodecError(f"unknown kind {kind!r}")


def _dict(pairs: list[tuple[object, object]]) -> dict[object, object]:
    """The dict, unless its keys are chosen to take it for ever."""
    alike = Counter(hash(key) for key, _ in pairs)
    if max(alike.values(), default=0) > MAX_ALIKE:
        raise CodecError("a dict of keys that have the same hash")
    return dict(pairs)


def _number(kind: str, text: str) -> int | float:
    if type(text) is not str or len(text) > MAX_DIGITS + 1:  # and a sign
        raise CodecError(f"a number of more than {MAX_DIGITS} digits")
    return int(text) if kind == "int" else float(text)


def _unpack_tensor(node: list, data: memoryview, at: int) -> tuple[torch.Tensor, int]:
    _, name, shape = node
    dtype = _DTYPES[name]
    if len(shape) > MAX_DIMENSIONS or not all(
        type(n) is int and 0 <= n <= MAX_BYTES for n in shape
    ):
        raise CodecError(f"impossible shape {shape!r}")
    numel = 1
    for n in shape:
        numel *= n
    num_bytes = numel * dtype.itemsize
    raw = bytearray(_take(data, at, num_bytes))
    if not numel:
        return torch.empty(shape, dtype=dtype), at
    return torch.frombuffer(raw, dtype=dtype).reshape(shape), at + num_bytes


def _take(data: memoryview, at: int, num_bytes: int) -> memoryview:
    if type(num_bytes) is not int or not 0 <= num_bytes <= len(data) - at:
        raise CodecError("a length that the data does not have")
    return data[at : at + num_bytes]
