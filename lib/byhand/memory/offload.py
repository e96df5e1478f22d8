"""Offload: what a layer saves lies in a file until its backward, in which it comes back mapped.

    forward    saved ──► file        written: as many bytes as the storages that it lies in
    backward   saved ◄── file        mapped: pages are read as backward touches them

Each forward call has one file. It has no name, so the folder stays empty: the file is gone with
what forward returned, or with the process. No number changes, so gradients equal the plain layer's
to the bit. Nothing is sent, and the layer sends what it does.

Storages that views share are written once. Found are tensors in lists and tuples, however deep;
what lies in other objects stays in memory. Here forward waits until all is written, and nothing is
read ahead: byhand.memory.prefetch does both beside computing.
Source: Rajbhandari et al. 2021, arXiv:2104.07857 (ZeRO-Infinity), section 5.1.2.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from byhand.model.layer import Layer

ALIGNED = 64  # a storage begins at a multiple of so many bytes of its file


@dataclass(frozen=True)
class Address:
    """Where a tensor lies: its storage begins at that byte of the file."""

    begin: int
    dtype: torch.dtype
    shape: torch.Size
    stride: tuple[int, ...]
    offset: int  # within the storage, in elements


@dataclass(frozen=True)
class Stored:
    """What a layer saved, with an Address for each tensor, and the file with these.

    No tuple: where a layer inside has offloaded, the addresses in its Stored are of another file.
    """

    file: IO[bytes]
    saved: Any
    device: torch.device

    @property
    def num_bytes(self) -> int:
        """Of the file."""
        return os.fstat(self.file.fileno()).st_size


class Offloaded(Layer):
    """The layer, but what it saves lies in a file. A layer like any other.

    >>> from tempfile import TemporaryDirectory
    >>> from byhand.mlp import Linear
    >>> folder = TemporaryDirectory()
    >>> layer = Offloaded(Linear(torch.eye(2), torch.zeros(2)), folder.name)
    >>> y, saved = layer.forward(torch.ones(1, 2))
    >>> layer.backward(y, saved)
    tensor([[1., 1.]])
    """

    def __init__(self, layer: Layer, folder: str | Path):
        """folder: on the disk that files shall lie on; it must exist."""
        self.layer, self.layers, self.folder = layer, [layer], folder

    def forward(self, x: Tensor) -> tuple[Tensor, Stored]:
        """x -> y; saves the file. Writes what the layer saves.

        Raises:
            OSError: the folder is missing, or its disk is full.
        """
        y, saved = self.layer.forward(x)
        return y, store(saved, self.folder, x.device)

    def backward(self, grad_y: Tensor, saved: Stored) -> Tensor:
        """grad_y -> grad_x. Adds to the gradients. Reads what forward wrote."""
        return self.layer.backward(grad_y, load(saved))

    def backward_first(self, grad_y: Tensor, saved: Stored) -> None:
        self.layer.backward_first(grad_y, load(saved))

    def backward_input(self, grad_y: Tensor, saved: Stored) -> tuple[Any, Any]:
        """grad_y -> grad_x; keeps what the layer keeps, which is not offloaded."""
        return self.layer.backward_input(grad_y, load(saved))

    def backward_weight(self, kept: Any) -> None:
        self.layer.backward_weight(kept)


def store(saved: Any, folder: str | Path, device: torch.device) -> Stored:
    """Write all storages, each once, into one new file. device: where the tensors shall be again.

    Raises:
        OSError: the folder is missing, or its disk is full.
    """
    file = tempfile.TemporaryFile(dir=folder)
    begins: dict[tuple[int, int], int] = {}  # by the storage's address and size

    def put(tensor: Tensor) -> Address:
        """Write the tensor's storage, unless it is in the file already."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr(), storage.nbytes()
        if key not in begins:
            begins[key] = append(file, storage)
        offset = int(tensor.storage_offset())
        return Address(begins[key], tensor.dtype, tensor.shape, tensor.stride(), offset)

    plain = replaced(saved, Tensor, lambda tensor: tensor.resolve_conj().resolve_neg())
    addresses = replaced(plain, Tensor, put)
    if not file.tell():
        file.write(bytes(ALIGNED))  # a file without bytes cannot be mapped
    file.flush()
    return Stored(file, addresses, device)


def append(file: IO[bytes], storage: torch.UntypedStorage) -> int:
    """Write a storage and zeros up to the next multiple of ALIGNED; where it begins."""
    begin = file.tell()
    content = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    file.write(content.cpu().numpy().data)
    file.write(bytes(-storage.nbytes() % ALIGNED))
    return begin


def load(stored: Stored, at_once: bool = False) -> Any:
    """What was stored. The pages are this process's own: who changes them changes no file.

    at_once: read all of it now, into memory.
    """
    pages: bytearray | mmap.mmap
    if at_once:
        pages = bytearray(stored.num_bytes)
        stored.file.seek(0)
        stored.file.readinto(pages)  # type: ignore[attr-defined]
    else:
        pages = mmap.mmap(stored.file.fileno(), 0, access=mmap.ACCESS_COPY)
    storage = torch.frombuffer(pages, dtype=torch.uint8).to(stored.device).untyped_storage()

    def get(address: Address) -> Tensor:
        first = address.begin // address.dtype.itemsize + address.offset
        like = torch.empty(0, dtype=address.dtype, device=stored.device)
        return like.set_(storage, first, address.shape, address.stride)

    return replaced(stored.saved, Address, get)


def replaced(value: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """The same nested lists and tuples, with function(item) for each item of that kind."""
    if isinstance(value, kind):
        return function(value)
    if not isinstance(value, (list, tuple)):
        return value
    items = [replaced(item, kind, function) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
