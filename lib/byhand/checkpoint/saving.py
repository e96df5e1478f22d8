"""Save what ranks hold, and load it into any other cut.

Each rank says which boxes of which tensors it holds. Replicas hold the same box: one of them writes
it. Each rank's file holds the boxes that it writes; the first rank's index says which box lies
where. The index is written last, and then all of it appears by one rename. To load, a rank compares
the boxes that it wants with those that were written, and reads what they share.

What is sent: gathers of what ranks hold and how it goes, some hundred bytes a tensor. No tensor is:
those move to the disk and from it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.checkpoint.boxes import Box, check_cover, overlap, place_in, span, writers
from byhand.checkpoint.files import CheckpointError, bytes_of, write
from byhand.checkpoint.folder import EXTRA, Checkpoint, Partial, keep_last, next_number, wholes

ALIGNED = 64  # a box begins at a multiple of so many bytes


@dataclass(frozen=True)
class Shard:
    """A box of a named tensor, on this rank.

    tensor: what this rank holds, a shard or a copy of all; dense, of any strides. shape: of the
    whole. starts: the index in the whole of tensor's first number, by dimension.

    >>> shard = Shard(torch.zeros(2, 4), shape=(8, 4), starts=(6, 0))
    >>> shard.box
    Box(starts=(6, 0), sizes=(2, 4))
    """

    tensor: Tensor
    shape: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def box(self) -> Box:
        """Where it lies in the whole.

        Raises:
            CheckpointError: the dimensions do not agree, or no numbers lie in the tensor's memory.
        """
        sizes = tuple(self.tensor.shape)
        if not len(self.starts) == len(self.shape) == len(sizes):
            raise CheckpointError(
                f"a shard {list(sizes)} that begins at {list(self.starts)} is no box of "
                f"{list(self.shape)}: all three have as many dimensions"
            )
        if self.tensor.is_meta or self.tensor.is_quantized or self.tensor.layout != torch.strided:
            raise CheckpointError("a tensor that is meta, quantized or sparse is no shard")
        return Box(tuple(map(int, self.starts)), sizes)  # numpy's integers are no JSON

    @property
    def dtype(self) -> str:
        """As the index names it."""
        return str(self.tensor.dtype).removeprefix("torch.")

    def copied(self) -> Shard:
        """The same, of a copy on the CPU."""
        return replace(self, tensor=self.tensor.detach().to("cpu", copy=True))


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
    checkpoints in the folder above stay, the last ones; at least 1. asynchronous: tensors are
    copied, and written in a thread while training goes on; wait() of what is returned, on all
    ranks and before the program ends, says how it went.

    Raises:
        CheckpointError, on all ranks alike: the folder exists, or a rank could not write or ended.
        ValueError, on all ranks alike: their boxes do not hold each number of a tensor once.

    >>> from tempfile import TemporaryDirectory
    >>> def write(rank, world_size, folder):
    ...     rows = torch.arange(8.0).tensor_split(world_size)[rank]
    ...     save(folder, {"weight": Shard(rows, (8,), (4 * rank,))}, extra={"step": 7})
    >>> folder = TemporaryDirectory()
    >>> run = launch(write, 2, (folder.name + "/step-7",))
    >>> newest(folder.name).name
    'step-7'
    """
    ranks = Ranks(group)
    first = ranks.rank == 0
    numbers = ranks.share(lambda: next_number(Path(folder).parent) if first else 0)
    held = ranks.share(
        lambda: {n: (s.dtype, tuple(map(int, s.shape)), s.box) for n, s in shards.items()}
    )
    tensors = _tensors(held)
    num_bytes = [
        {
            (name, box): box.num_elements * getattr(torch, dtype).itemsize
            for name, (dtype, _, box) in of.items()
        }
        for of in held
    ]
    mine = {name: shards[name] for name, _ in writers(num_bytes)[ranks.rank]}
    partial = Partial(Path(folder), numbers[0])
    try:
        pickled = ranks.agree(lambda: _begin(partial, extra, keep) if first else b"")
        saving = ranks.agree(
            lambda: Saving(ranks, partial, mine, tensors, pickled, keep, copied=asynchronous)
        )
    except BaseException:
        partial.close(remove=True)
        raise
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
        mine: Mapping[str, Shard],
        tensors: Mapping[str, dict[str, Any]],
        extra: bytes,
        keep: int | None,
        copied: bool,
    ):
        self.ranks, self.partial, self.file = ranks, partial, partial.open(ranks.rank)
        self.mine = {n: s.copied() for n, s in mine.items()} if copied else mine
        self.tensors, self.extra, self.keep = tensors, extra, keep
        self._thread: threading.Thread | None = None
        self._error: Exception | None = CheckpointError(f"{partial.final}: saving was interrupted")

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
            self._error = None
        except Exception as error:
            self._error = error
        finally:
            self.partial.close(remove=self._error is not None)

    def wait(self) -> None:
        """On all ranks: until it is on the disk.

        Raises:
            CheckpointError, on all ranks alike: a rank could not write, or ended.
        """
        if self._thread is not None:
            self._thread.join()
        self.ranks.agree(self._outcome)

    def _outcome(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        """Write this rank's file, and say in the folder that it is there, or why not."""
        places, parts, at = [], [], 0
        try:
            for name, shard in self.mine.items():
                places.append([name, at, *shard.box])
                numbers = bytes_of(shard.tensor)
                parts += [numbers, memoryview(bytes(-len(numbers) % ALIGNED))]
                at += sum(map(len, parts[-2:]))
            checksums = write(self.file, parts)
        except Exception as error:
            with contextlib.suppress(OSError):  # a full disk then has room for the reason
                os.ftruncate(self.file.fileno(), 0)
            self.partial.done(self.ranks.rank, error=_sentence(error))
            return
        self.partial.done(self.ranks.rank, boxes=places, num_bytes=at, checksums=checksums)

    def _appear(self) -> None:
        index: dict[str, Any] = {"files": {}, "tensors": self.tensors}
        for rank, said in enumerate(self.partial.wait_for(self.ranks.size)):
            name = self.partial.file_of(rank)
            for tensor, at, *box in said.pop("boxes"):
                self.tensors[tensor]["boxes"].append([name, at, *box])
            index["files"][name] = said
        with open(self.partial.path / EXTRA, "wb") as file:
            checksums = write(file, [memoryview(self.extra)])
        index["files"][EXTRA] = {"num_bytes": len(self.extra), "checksums": checksums}
        self.partial.appear(index, self.ranks.size)
        if self.keep is not None:
            keep_last(self.partial.final.parent, self.keep)


def load(
    folder: str | Path, shards: Mapping[str, Shard], group: dist.ProcessGroup | None = None
) -> Any:
    """Fill the tensors of these shards from a checkpoint, however it was cut; its `extra`.

    Each rank reads the blocks of 1 MiB in which its boxes lie, and no others. Nothing is filled
    unless all ranks of the group found their bytes as they were written. Tensors of `extra` are on
    the CPU.

    Raises:
        CheckpointError, on all ranks alike: the folder is no whole checkpoint, or another on
            another rank, bytes have changed, it has no such tensor, of this shape and dtype, or a
            tensor could not be filled (then others may be).

    >>> from tempfile import TemporaryDirectory
    >>> def from_rows_to_columns(rank, world_size, folder):
    ...     row, column = torch.tensor([[1.0, 2.0]]) + 10 * rank, torch.empty(2, 1)
    ...     save(folder, {"weight": Shard(row, (2, 2), (rank, 0))}, extra={"step": 7})
    ...     extra = load(folder, {"weight": Shard(column, (2, 2), (0, rank))})
    ...     return column.flatten().tolist(), extra
    >>> folder = TemporaryDirectory()
    >>> launch(from_rows_to_columns, 2, (folder.name + "/step-7",)).results
    [([1.0, 11.0], {'step': 7}), ([2.0, 12.0], {'step': 7})]
    """
    ranks, found = Ranks(group), _Reading(Path(folder), shards)
    numbers = ranks.share(found.read)
    if len(set(numbers)) > 1:
        raise CheckpointError(
            f"{folder} is another checkpoint on another rank (numbers {numbers}): let one rank "
            "choose, and tell the others"
        )
    ranks.agree(found.fill)
    return found.extra


def newest(folder: str | Path) -> Path | None:
    """The last checkpoint in a folder that is whole; None where there is none.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> newest(folder.name) is None
    True
    """
    found = wholes(Path(folder))
    return found[-1].path if found else None


class _Reading:
    """What one rank needs of a checkpoint."""

    def __init__(self, folder: Path, shards: Mapping[str, Shard]):
        self.folder, self.shards = folder, shards

    def read(self) -> int:
        """Find, and check, all bytes that are needed; the number of the checkpoint."""
        found = Checkpoint(self.folder)
        self.pairs = [pair for name, s in self.shards.items() for pair in _parts(found, name, s)]
        extra = io.BytesIO(found.read_all(EXTRA))
        self.extra = torch.load(extra, weights_only=True, map_location="cpu")
        return found.number

    def fill(self) -> None:
        """Copy the saved numbers into the shards' tensors."""
        with torch.no_grad():
            for there, saved in self.pairs:
                there.copy_(saved)


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
    if wanted.num_elements and overlap(wanted, whole) != wanted:
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


def _begin(partial: Partial, extra: Any, keep: int | None) -> bytes:
    """On the first rank: check what it alone needs, make the folder; `extra` as it is written."""
    if keep is not None and keep < 1:
        raise CheckpointError(f"keep={keep}: at least 1 is kept, the checkpoint that is saved")
    pickled = _pickled(extra)
    partial.begin()
    return pickled


def _pickled(extra: Any) -> bytes:
    """As load can read it, which reads no code."""
    file = io.BytesIO()
    torch.save(extra, file)
    file.seek(0)
    try:
        torch.load(file, weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            "extra holds what is read only by running code, as numpy's numbers are: save plain "
            "numbers, strings, lists, dictionaries and tensors"
        ) from error
    return file.getvalue()


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"


class Ranks:
    """The ranks of a group, or one process alone: what they tell each other."""

    def __init__(self, group: dist.ProcessGroup | None):
        """Raises:
        ValueError: this rank is not in the group.
        """
        self.group, alone = group, not dist.is_initialized()
        self.rank = 0 if alone else dist.get_rank(group)
        self.size = 1 if alone else dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError("this rank is not in the group: only ranks of the group save and load")

    def share(self, do: Callable[[], Any]) -> list[Any]:
        """What `do` returns on every rank, by rank, if it fails on none.

        Raises:
            CheckpointError: what the first rank met on which it failed, or that a rank has ended.
        """
        value, met = None, None
        try:
            value = do()
        except Exception as error:
            met = _sentence(error)
        found: list[Any] = [(value, met)] * self.size
        if self.size > 1:
            try:
                dist.all_gather_object(found, (value, met), group=self.group)
            except RuntimeError as error:
                raise CheckpointError(f"a rank ended, or does not answer: {error}") from error
        for _, met in found:
            if met is not None:
                raise CheckpointError(met)
        return [value for value, _ in found]

    def agree(self, do: Callable[[], Any]) -> Any:
        """What `do` returns here, if it fails on no rank; raises as share does."""
        value = []
        self.share(lambda: value.append(do()))
        return value[0]
