"""A record of the trace as bytes: written by a rank, read with every length and range checked.

    length, kind, index, moment, value, and for a FORM the fields of ledger.Call, one by one

BEGIN   the rank entered the function
FORM    calls of which `index` is said look like this
CALL    it made its next communication call, of form `index`; value WAIT or ASIDE: and waits for it
WAIT    it stands still for call number `index`; value 1: it computed since the call
ASIDE   a thread beside the function's own stands still for it
AWAKE   it goes on
DONE    the call completed (only where the backend tells, and the rank did not wait at once)
END     it left the function; value: the most bytes it held, or NOT_FOLLOWED
"""

from __future__ import annotations

import math
import struct
from dataclasses import fields
from typing import Any, NamedTuple

from byhand.runtime.ledger import Call

BEGIN, FORM, CALL, WAIT, ASIDE, AWAKE, DONE, END = range(8)
NOT_FOLLOWED = -1
MAX_RECORD = 1 << 18
MAX_TEXT = 20_000
MAX_DIMENSIONS = 64
MAX_ITEMS = 4096  # of a list in a record: ranks, or rows to each
_HEAD = struct.Struct("<IBIdq")
_NUMBER = struct.Struct("<q")
_NONE = -(1 << 63)
_SCHEMA = tuple((field.name, field.type) for field in fields(Call))


class Record(NamedTuple):
    """One record; `body` is a form's fields, packed."""

    kind: int
    index: int
    moment: float
    value: int
    body: bytes


def packed(kind: int, index: int, moment: float, value: int = 0, body: bytes = b"") -> bytes:
    """A record as bytes."""
    return _HEAD.pack(_HEAD.size + len(body), kind, index, moment, value) + body


def packed_call(call: Call) -> bytes:
    """The fields of a call as bytes, in the schema's order."""
    parts = []
    for name, kind in _SCHEMA:
        value = getattr(call, name)
        if kind == "str":
            text = value.encode("utf-8", "replace")[:MAX_TEXT]
            parts += _NUMBER.pack(len(text)), text
        elif kind == "tuple[int, ...]":
            parts.append(struct.pack(f"<{len(value) + 1}q", len(value), *value))
        else:
            parts.append(_NUMBER.pack(_NONE if value is None else value))
    return b"".join(parts)


def records(data: bytes) -> tuple[list[Record], bytes]:
    """The whole records that `data` begins with, and what follows them.

    Raises:
        ValueError: no record looks so.
    """
    whole, at = [], 0
    while at + _HEAD.size <= len(data):
        length, kind, index, moment, value = _HEAD.unpack_from(data, at)
        if not _HEAD.size <= length <= MAX_RECORD or not math.isfinite(moment):
            raise ValueError(f"a record of {length} bytes at {moment}")
        if at + length > len(data):
            break
        whole.append(Record(kind, index, moment, value, data[at + _HEAD.size : at + length]))
        at += length
    return whole, data[at:]


def unpacked_call(body: bytes) -> dict[str, Any]:
    """The fields of a call, each of its type and of a size that costs the reader nothing.

    Raises:
        ValueError: no call has such fields.
    """
    said, at = {}, 0
    for name, kind in _SCHEMA:
        said[name], at = _field(name, kind, body, at)
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes left over")
    return said


def _field(name: str, kind: str, body: bytes, at: int) -> tuple[Any, int]:
    """One field, and where the next begins."""
    if at + _NUMBER.size > len(body):
        raise ValueError(f"no {name}")
    (number,) = _NUMBER.unpack_from(body, at)
    at += _NUMBER.size
    if kind in ("int", "int | None"):
        value = None if number == _NONE and kind == "int | None" else number
        if name == "payload_bytes" and number < 0:
            raise ValueError(f"{name} is out of range")
        return value, at
    most = MAX_TEXT if kind == "str" else MAX_DIMENSIONS if name == "shape" else MAX_ITEMS
    end = at + number * (1 if kind == "str" else _NUMBER.size)
    if not 0 <= number <= most or end > len(body):
        raise ValueError(f"{name} is longer than any call's")
    if kind == "str":
        return body[at:end].decode(), end
    items = struct.unpack_from(f"<{number}q", body, at)
    if min(items, default=0) < 0:
        raise ValueError(f"{name} is out of range")
    return items, end
