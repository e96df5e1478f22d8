"""The folder of a checkpoint: how it appears at once, and how it is read.

parent/step-7.NUMBER.partial/   while it is written; of a saver that died, removed by the next
    lock                  held by the program that writes
    00000.bin             what rank 0 writes: its boxes, one after another
    00000.json            that it has, or why not
parent/step-7/            all of it, by one rename
    00000.bin, ...
    extra.pt              what is no shard
    index.json            which box lies where, and the checksums of every file
parent/step-7.removed/    while it is deleted; of a program that died then, removed with the next
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import time
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from byhand.checkpoint.files import Checked, CheckpointError, sync, sync_folder

FORMAT = "byhand checkpoint 1"
INDEX, EXTRA = "index.json", "extra.pt"
PARTIAL, REMOVED = ".partial", ".removed"
POLL = 0.01


class Partial:
    """A folder that is being written; no other saver writes there, even to the same final one.

    number: when this was begun; the last checkpoint is the one of the largest number.
    """

    def __init__(self, final: Path, number: int):
        self.final, self.number = final, number
        self.begun = False  # by this process
        self._locks: list[Any] = []  # files, open for as long as they are locked

    @property
    def path(self) -> Path:
        """Where it is until it is whole."""
        return self.final.with_name(f"{self.final.name}.{self.number}{PARTIAL}")

    def begin(self) -> None:
        """On one rank: make it, and remove what savers that died have left in the folder above.

        Raises:
            CheckpointError: another program writes this checkpoint, or has written it.
        """
        if self.final.suffix in (PARTIAL, REMOVED):
            raise CheckpointError(
                f"{self.final}: {self.final.suffix} is the end of names of unfinished ones"
            )
        if self.final.exists():
            raise CheckpointError(f"{self.final} exists: save each step in a folder of its own")
        made = [above for above in self.final.parents if not above.exists()]
        self.final.parent.mkdir(parents=True, exist_ok=True)
        for above in made:
            with contextlib.suppress(PermissionError):  # of who may write there, and not read
                sync_folder(above.parent)
        for left in self.final.parent.iterdir():
            if left.suffix != PARTIAL:
                continue
            if left.name.rsplit(".", 2)[0] == self.final.name:
                with open(left / "lock", "ab") as lock:
                    if not _locked(lock):
                        raise CheckpointError(f"another program is saving into {self.final} now")
                    shutil.rmtree(left, ignore_errors=True)
            elif _dead(left):
                shutil.rmtree(left, ignore_errors=True)
        self.path.mkdir()
        self.begun = True
        self._lock("lock")

    def open(self, rank: int) -> BinaryIO:
        """The file of a rank, locked until it has said `done`: so others see that it lives."""
        return self._lock(self.file_of(rank))

    def _lock(self, name: str) -> BinaryIO:
        file = open(self.path / name, "wb")
        self._locks.append(file)
        if not _locked(file):
            raise CheckpointError(f"another program writes {self.path / name}")
        return file

    def file_of(self, rank: int) -> str:
        """The name of a rank's file."""
        return f"{rank:05}.bin"

    def done(self, rank: int, **said: Any) -> None:
        """Say what this rank has written, or why it has not."""
        sayings = self.path / f"{rank:05}.json"
        sayings.with_suffix(".new").write_text(json.dumps(said))
        sayings.with_suffix(".new").rename(sayings)

    def wait_for(self, num_ranks: int) -> list[dict[str, Any]]:
        """What each rank said, by rank, when none of them writes any more.

        Raises:
            CheckpointError: one could not write, or has ended before it had.
        """
        said = [self._said(rank) for rank in range(num_ranks)]
        for one in said:
            if "error" in one:
                raise CheckpointError(one["error"])
        return said

    def _said(self, rank: int) -> dict[str, Any]:
        sayings = self.path / f"{rank:05}.json"
        while not sayings.exists():
            with open(self.path / self.file_of(rank), "ab") as file:
                if _locked(file) and not sayings.exists():
                    return {"error": f"rank {rank} ended while it wrote {self.final}"}
            time.sleep(POLL)
        said = json.loads(sayings.read_text())
        if "error" in said:
            said["error"] = f"rank {rank} could not write {self.final}: {said['error']}"
        return said

    def appear(self, index: dict[str, Any], num_ranks: int) -> None:
        """On the rank that began: make the folder whole, and let it appear.

        Raises:
            CheckpointError: another program was faster. OSError: a full disk, say.
        """
        body = json.dumps({"number": self.number, **index})
        with open(self.path / INDEX, "w") as file:
            file.write(f"{_head(body)}\n{body}")
            sync(file)
        for rank in range(num_ranks):
            (self.path / f"{rank:05}.json").unlink()
        sync_folder(self.path)
        try:
            self.path.rename(self.final)
        except OSError as error:
            if not self.final.exists():
                raise
            raise CheckpointError(f"another program has written {self.final} meanwhile") from error
        (self.final / "lock").unlink()  # not before: who finds no lock may remove the folder
        sync_folder(self.final.parent)

    def close(self, remove: bool = False) -> None:
        """Let go; remove: on the rank that began, what was written, which will not be whole."""
        if remove and self.begun:
            shutil.rmtree(self.path, ignore_errors=True)
        for file in self._locks:
            with contextlib.suppress(OSError):  # of bytes that are not wanted: others were synced
                file.close()
        self._locks.clear()


class Checkpoint:
    """A folder that is whole: the index says so, and every file is as long as it says.

    Raises:
        CheckpointError: it is not.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            head, _, body = (path / INDEX).read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            raise CheckpointError(
                f"{path} is no whole checkpoint: it has no {INDEX}; newest(parent) finds the last "
                "that is whole"
            ) from None
        if head != _head(body):
            raise CheckpointError(f"{path / INDEX} has changed since it was written")
        self.index: dict[str, Any] = json.loads(body)
        for file, checks in self.index["files"].items():
            try:
                found = (path / file).stat().st_size
            except OSError as error:
                raise CheckpointError(f"{path / file} is missing") from error
            if found != checks["num_bytes"]:
                raise CheckpointError(f"{path / file} has {found} bytes of {checks['num_bytes']}")
        self._open: dict[str, Checked] = {}

    @property
    def number(self) -> int:
        """When its saving was begun; a copy of the folder has the same."""
        return self.index["number"]

    @property
    def tensors(self) -> dict[str, dict[str, Any]]:
        """By name: dtype, shape, and boxes, each (file, first byte, Box)."""
        return self.index["tensors"]

    def read(self, file: str, start: int, stop: int) -> memoryview:
        """Those bytes of a file.

        Raises:
            CheckpointError: they have changed.
        """
        if file not in self._open:
            self._open[file] = Checked(self.path / file, self.index["files"][file]["checksums"])
        return self._open[file].read(start, stop)

    def read_all(self, file: str) -> memoryview:
        """All of a file."""
        return self.read(file, 0, self.index["files"][file]["num_bytes"])

    @property
    def num_read(self) -> int:
        """Bytes read, and checked, so far."""
        return sum(file.num_read for file in self._open.values())

    def remove(self) -> None:
        """Delete it; from the first moment on it is no checkpoint any more.

        Another saving may do so at the same time. What cannot be deleted goes with the next.
        """
        gone = self.path.with_name(self.path.name + REMOVED)
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(OSError):  # the other was faster, or it is another user's
            self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def keep_last(parent: Path, count: int) -> None:
    """Delete all checkpoints in a folder but the last ones, and what a program that died left."""
    for old in [found for found in wholes(parent) if not found.path.is_symlink()][:-count]:
        old.remove()
    for left in parent.iterdir():
        if left.suffix == REMOVED:
            shutil.rmtree(left, ignore_errors=True)


def next_number(parent: Path) -> int:
    """The clock's, in nanoseconds, or that after the last checkpoint's if that is larger."""
    return max([time.time_ns(), *(found.number + 1 for found in wholes(parent))])


def wholes(parent: Path) -> list[Checkpoint]:
    """The checkpoints in a folder that are whole, in the order in which their saving was begun."""
    found = []
    for path in parent.iterdir() if parent.is_dir() else ():
        with contextlib.suppress(CheckpointError):
            found += [Checkpoint(path)] if path.suffix not in (PARTIAL, REMOVED) else []
    return sorted(found, key=lambda one: one.number)


def _dead(partial: Path) -> bool:
    """Whether its saver has held the lock, for ranks' files come after it, and holds it no more."""
    try:
        with open(partial / "lock", "r+b") as lock:
            return any(partial.glob("*.bin")) and _locked(lock)
    except OSError:  # it has its final name by now, or is another user's
        return False


def _locked(file: Any) -> bool:
    """Lock a file, for as long as it is open, unless another process has."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _head(body: str) -> str:
    """The first line of an index."""
    return f"{FORMAT}, checksum {zlib.crc32(body.encode())}"
