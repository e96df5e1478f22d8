"""Files that tell a changed byte, and folders that are there whole or not at all.

A file is checked in blocks of 1 MiB, so that who needs a part of it reads no more than the blocks
in which that part lies. What must outlive a power cut is synced: the files, then the folder that
names them, then, after the one rename that makes it visible, the folder above.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

BLOCK = 1 << 20


class CheckpointError(Exception):
    """Why a checkpoint was not written or cannot be read, and what to do."""


def bytes_of(tensor: Tensor) -> memoryview:
    """A strided tensor's numbers, row by row, from the CPU."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # Of a lone number any stride is contiguous; the stride of a dimension put last is always 1.
    return plain.flatten().unsqueeze(-1).view(torch.uint8).flatten().numpy().data


def write(file: IO[Any], parts: Iterable[memoryview]) -> list[int]:
    """Write bytes into an open, empty file and sync it; the checksum of each block.

    Raises:
        OSError: a full disk, say.
    """
    checksums, room = [], 0
    for part in parts:
        while len(part):
            if room == 0:
                checksums.append(0)
                room = BLOCK
            head, part = part[:room], part[room:]
            checksums[-1] = zlib.crc32(head, checksums[-1])
            room -= len(head)
            file.write(head)
    sync(file)
    return checksums


def sync(file: IO[Any]) -> None:
    """Have everything written so far on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Checked:
    """A file whose bytes are checked, block by block, before they are used.

    `num_read`: bytes of the blocks that were.
    """

    def __init__(self, path: Path, checksums: Sequence[int]):
        self.path, self.checksums, self.num_read = path, checksums, 0
        self._good: set[int] = set()
        self._bytes: mmap.mmap | bytes = b""
        if path.stat().st_size:
            with open(path, "rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def read(self, start: int, stop: int) -> memoryview:
        """Those bytes.

        Raises:
            CheckpointError: one of their blocks is not as it was written.
        """
        for number in range(start // BLOCK, -(-stop // BLOCK)):
            if number in self._good:
                continue
            block = memoryview(self._bytes)[number * BLOCK : (number + 1) * BLOCK]
            if zlib.crc32(block) != self.checksums[number]:
                raise CheckpointError(
                    f"{self.path} has changed since it was written (bytes {number * BLOCK} to "
                    f"{number * BLOCK + len(block)}): take an older checkpoint"
                )
            self._good.add(number)
            self.num_read += len(block)
        return memoryview(self._bytes)[start:stop]
