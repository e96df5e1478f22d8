"""Save what ranks hold, and load it into any other cut.

Each rank says which boxes of which tensors it holds. Replicas hold the same box: one of them writes
it. Each rank's file holds the boxes that it writes; the first rank's index says which box lies
where. The index is written last, and then all of it appears by one rename. To load, a rank compares
the boxes that it wants with those that were written, and reads what they share.

What is sent: gathers of what ranks hold and how it went, some hundred bytes a tensor. No tensor is:
those move to the disk and from it.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.checkpoint.boxes import Box, check_cover, overlap, place_in, span, writers
from byhand.checkpoint.files import CheckpointError, write
from byhand.checkpoint.folder import EXTRA, Checkpoint, Partial, wholes

ALIGNED = 64  # a box begins at a multiple of so many bytes


@dataclass(frozen=True)
class Shard:
    """A box of a named tensor, on this rank.

    tensor: what this rank holds, a shard or a copy of all. shape: of the whole. starts: the index
    in the whole of tensor's first number, by dimension.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def box(self) -> Box:
        """Where it lies in the whole."""
        return Box(tuple(self.starts), tuple(self.tensor.shape))

    @property
    def dtype(self) -> str:
        """As the index names it."""
        return str(self.tensor.dtype).removeprefix("torch.")


def save(
    folder: str | Path,
    shards: Mapping[str, Shard],
    extra: Any = None,
    group: dist.ProcessGroup | None = None,
    keep: int | None = None,
    asynchronous: bool = False,
) -> Saving | None:
    """Write a checkpoint on all ranks of a group: then `folder` is there whole, or not at all.

    folder: a new one, where all ranks see it. extra: plain data and tensors that are no shards
    (step, position in the data, random numbers); the first rank's is kept. keep: so many
    checkpoints in the folder above stay, the last ones. asynchronous: tensors are copied, and
    written in a thread while training goes on; wait() of what is returned, on all ranks, says how
    it went.

    Raises:
        CheckpointError, on all ranks alike: the folder exists, or a rank could not write.
        ValueError, on all ranks alike: their boxes do not hold each number of a tensor once.
    """
    ranks, partial = Ranks(group), Partial(Path(folder))
    held = ranks.gather({name: (s.dtype, tuple(s.shape), s.box) for name, s in shards.items()})
    tensors = _tensors(held)
    boxes = [{(name, box): box.count for name, (*_, box) in of.items()} for of in held]
    mine = {name: shards[name] for name, _ in writers(boxes)[ranks.rank]}
    try:
        extra = ranks.agree(lambda: _pickled(extra) if ranks.rank == 0 else b"")
        ranks.agree(partial.begin if ranks.rank == 0 else lambda: None)
        file = ranks.agree(lambda: partial.open(ranks.rank))
    except CheckpointError:
        partial.close(remove=True)
        raise
    if asynchronous:
        mine = {n: Shard(s.tensor.detach().clone(), s.shape, s.starts) for n, s in mine.items()}
    saving = Saving(ranks, partial, file, mine, tensors, extra, keep)
    if asynchronous:
        saving.start()
        return saving
    saving.run()
    saving.wait()
    return None


class Saving:
    """A checkpoint on its way to the disk."""

    def __init__(
        self,
        ranks: Ranks,
        partial: Partial,
        file: BinaryIO,
        mine: Mapping[str, Shard],
        tensors: Mapping[str, dict[str, Any]],
        extra: bytes,
        keep: int | None,
    ):
        self.ranks, self.partial, self.file, self.mine = ranks, partial, file, mine
        self.tensors, self.extra, self.keep = tensors, extra, keep
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self) -> None:
        """Run in a thread."""
        self._thread = threading.Thread(target=self.run)
        self._thread.start()

    def run(self) -> None:
        """Write this rank's file; on the first rank then wait for the others', and let it appear.

        Says nothing to other ranks but through the folder, so it can run beside their training.
        """
        try:
            self._write()
            if self.ranks.rank == 0:
                self._appear()
        except Exception as error:
            self._error = error
        self.partial.close(remove=self._error is not None)

    def wait(self) -> None:
        """On all ranks: until it is on the disk.

        Raises:
            CheckpointError, on all ranks alike: a rank could not write.
        """
        if self._thread is not None:
            self._thread.join()
        self.ranks.agree(self._outcome)

    def _outcome(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        places, parts, at = [], [], 0
        for name, shard in self.mine.items():
            numbers = shard.tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
            places.append([name, at, *shard.box])
            parts += [memoryview(numbers), memoryview(bytes(-len(numbers) % ALIGNED))]
            at += sum(map(len, parts[-2:]))
        try:
            checksums = write(self.file, parts)
        except OSError as error:
            self.partial.done(self.ranks.rank, error=str(error))
            raise
        self.partial.done(self.ranks.rank, boxes=places, num_bytes=at, checksums=checksums)

    def _appear(self) -> None:
        index: dict[str, Any] = {"files": {}, "tensors": self.tensors}
        for rank in range(self.ranks.size):
            said, name = self.partial.wait_for(rank), self.partial.file_of(rank)
            for tensor, at, *box in said.pop("boxes"):
                self.tensors[tensor]["boxes"].append([name, at, *box])
            index["files"][name] = said
        with open(self.partial.path / EXTRA, "wb") as file:
            checksums = write(file, [memoryview(self.extra)])
        index["files"][EXTRA] = {"num_bytes": len(self.extra), "checksums": checksums}
        self.partial.appear(index, self.ranks.size)
        if self.keep is not None:
            for old in wholes(self.partial.final.parent)[: -self.keep]:
                old.remove()


def load(
    folder: str | Path, shards: Mapping[str, Shard], group: dist.ProcessGroup | None = None
) -> Any:
    """Fill the tensors of these shards from a checkpoint, however it was cut; its `extra`.

    Each rank reads the blocks of 1 MiB in which its boxes lie, and no others. Nothing is filled
    unless all ranks of the group found their bytes as they were written.

    Raises:
        CheckpointError, on all ranks alike: the folder is no whole checkpoint, bytes have changed,
            or it has no such tensor, of this shape and dtype.
    """
    ranks = Ranks(group)
    pairs, extra = ranks.agree(lambda: _read(Path(folder), shards))
    with torch.no_grad():
        for there, saved in pairs:
            there.copy_(saved)
    return extra


def newest(folder: str | Path) -> Path | None:
    """The last checkpoint in a folder that is whole; None where there is none."""
    found = wholes(Path(folder))
    return found[-1].path if found else None


def _read(folder: Path, shards: Mapping[str, Shard]) -> tuple[list[tuple[Tensor, Tensor]], Any]:
    """(a part of a shard's tensor, the saved numbers for it) for all parts, and the extra."""
    checkpoint = Checkpoint(folder)
    pairs = [pair for name, shard in shards.items() for pair in _parts(checkpoint, name, shard)]
    extra = io.BytesIO(checkpoint.read_all(EXTRA))
    return pairs, torch.load(extra, weights_only=True)


def _parts(checkpoint: Checkpoint, name: str, shard: Shard) -> Iterator[tuple[Tensor, Tensor]]:
    saved = checkpoint.tensors.get(name)
    if saved is None:
        raise CheckpointError(
            f"{checkpoint.path} has no {name!r}; it has {', '.join(sorted(checkpoint.tensors))}"
        )
    for what, have, want in (
        ("shape", saved["shape"], list(shard.shape)),
        ("dtype", saved["dtype"], shard.dtype),
    ):
        if have != want:
            raise CheckpointError(
                f"{checkpoint.path} has {name!r} of {what} {have}, and {want} is asked for"
            )
    wanted, itemsize = shard.box, shard.tensor.itemsize
    whole = Box((0,) * len(shard.shape), tuple(shard.shape))
    if wanted.count and overlap(wanted, whole) != wanted:
        raise CheckpointError(f"{name!r} {list(shard.shape)} has no box {wanted}")
    for file, at, starts, sizes in saved["boxes"]:
        box = Box(tuple(starts), tuple(sizes))
        shared = overlap(box, wanted)
        if shared is None:
            continue
        first, last = span(shared, box)
        data = checkpoint.read(file, at + first * itemsize, at + last * itemsize)
        strides = torch.empty(box.sizes, device="meta").stride()
        numbers = torch.frombuffer(data, dtype=shard.tensor.dtype)
        yield shard.tensor[place_in(shared, wanted)], numbers.as_strided(shared.sizes, strides)


def _tensors(held: list[dict[str, tuple[str, tuple[int, ...], Box]]]) -> dict[str, dict[str, Any]]:
    """By name: dtype, shape, and no boxes yet, of what all ranks hold together.

    Raises:
        ValueError: ranks do not agree, or do not hold each number once.
    """
    found: dict[str, dict[str, Any]] = {}
    for rank, of in enumerate(held):
        for name, (dtype, shape, _) in of.items():
            here = {"dtype": dtype, "shape": list(shape), "boxes": []}
            if found.setdefault(name, here) != here:
                other = found[name]
                raise ValueError(
                    f"{name}: rank {rank} has {dtype} {list(shape)} and a rank before it "
                    f"{other['dtype']} {other['shape']}"
                )
    for name, of_name in found.items():
        check_cover(name, of_name["shape"], [of[name][2] for of in held if name in of])
    return found


def _pickled(extra: Any) -> bytes:
    """As load can read it, which reads no code."""
    file = io.BytesIO()
    torch.save(extra, file)
    file.seek(0)
    torch.load(file, weights_only=True)
    return file.getvalue()


class Ranks:
    """The ranks of a group, or one process alone: what they tell each other."""

    def __init__(self, group: dist.ProcessGroup | None):
        self.group, alone = group, not dist.is_initialized()
        self.rank = 0 if alone else dist.get_rank(group)
        self.size = 1 if alone else dist.get_world_size(group)

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, by rank."""
        found = [value] * self.size
        if self.size > 1:
            dist.all_gather_object(found, value, group=self.group)
        return found

    def agree(self, do: Callable[[], Any]) -> Any:
        """What `do` returns here, if it fails on no rank.

        Raises:
            CheckpointError: what the first rank met on which it failed.
        """
        value, met = None, None
        try:
            value = do()
        except Exception as error:
            met = (
                str(error)
                if isinstance(error, CheckpointError)
                else f"{type(error).__name__}: {error}"
            )
        for error in self.gather(met):
            if error is not None:
                raise CheckpointError(error)
        return value
