"""A disk that forgets, when the power goes, whatever was not synced: to try a save on. Pure.

    disk = Disk(changes=5)         the power goes instead of the sixth change
    disk.mkdir("a")                changes: mkdir, write, sync, rename, remove
    disk.write("a/x", b"123")
    disk.sync("a/x")               the bytes of a file are on the disk
    disk.sync("a")                 the names in a folder are: what was made, renamed, removed there
    disk.after_cut(seed=0)         what one finds when the power is back

A real disk is no other, but cannot be asked to fail at the fifth write. What was written and not
synced may be there afterwards, or not, or half of it; and files and folders come in no order. So a
name can be there without its bytes, or bytes without their name. A rename happens at once.
"""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass, field


class PowerCut(BaseException):
    """The machine is off: no `except Exception` meets this.

    >>> disk = Disk(changes=1)
    >>> disk.write("weights", b"1")
    >>> disk.write("weights", b"2")
    Traceback (most recent call last):
        ...
    byhand.fault_tolerance.disk.PowerCut: the power went
    """


@dataclass(eq=False)
class File:
    """Bytes as programs see them, and as they are on the disk for sure."""

    now: bytes = b""
    synced: bytes = b""


@dataclass(eq=False)
class Folder:
    """The same of a folder: what each name in it is."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)


class Disk:
    """Files and folders by path, such as "runs/step-3/0.bin"; "" is the top one. Empty at first.

    changes: so many can be made before the power goes; None: it never does. room: in bytes, for
    files; None: any.

    >>> disk = Disk()
    >>> disk.mkdir("step-1")
    >>> disk.write("step-1/0.bin", b"weights")
    >>> disk.names("step-1"), disk.after_cut(seed=0).names("")
    (['0.bin'], [])
    """

    def __init__(self, changes: int | None = None, room: int | None = None):
        self.changes, self.room, self.root = changes, room, Folder()

    def mkdir(self, path: str) -> None:
        """Make an empty folder. FileExistsError: there is something of this name."""
        self._change()
        folder, name = self._parent(path)
        if name in folder.now:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        folder.now[name] = Folder()

    def write(self, path: str, data: bytes) -> None:
        """Make a file of these bytes, or give one other bytes. OSError: the disk is full."""
        self._change()
        folder, name = self._parent(path)
        file = folder.now.get(name, File())
        if isinstance(file, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if self.room is not None and _size(self.root) - len(file.now) + len(data) > self.room:
            file.now, folder.now[name] = b"", file  # as much as fitted, and no more
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        file.now, folder.now[name] = bytes(data), file

    def sync(self, path: str) -> None:
        """Have a file's bytes on the disk, or the names in a folder."""
        self._change()
        node = self._node(path)
        if isinstance(node, File):
            node.synced = node.now
        else:
            node.synced = dict(node.now)

    def rename(self, old: str, new: str) -> None:
        """Give a file or a folder another name; a file of that name goes. Not over a folder."""
        self._change()
        node = self._node(old)
        folder, name = self._parent(new)
        if isinstance(folder.now.get(name), Folder) or (
            name in folder.now and isinstance(node, Folder)
        ):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        before, last = self._parent(old)
        del before.now[last]
        folder.now[name] = node

    def remove(self, path: str) -> None:
        """A file, or a folder and all in it."""
        self._change()
        self._node(path)
        folder, name = self._parent(path)
        del folder.now[name]

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted."""
        node = self._node(path)
        if isinstance(node, File):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return sorted(node.now)

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        node = self._node(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node.now

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder of this name."""
        try:
            self._node(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def after_cut(self, seed: int) -> Disk:
        """What is there when the power is back: a disk of its own, on which all is synced.

        seed 0: nothing that was not synced. 1: all of it, as after the death of the program alone.
        Others: of each file nothing, half or all, and of each folder the old or the new names.
        """
        draw = random.Random(seed)

        def left(node: File | Folder) -> File | Folder:
            """What is left of a file, or of a folder and all in it."""
            kept = draw.choice((0.0, 0.5, 1.0)) if seed > 1 else float(seed)
            if isinstance(node, File):
                half = node.now[: len(node.now) // 2]
                data = {0.0: node.synced, 0.5: half, 1.0: node.now}[kept]
                data = node.now if node.now == node.synced else data
                return File(data, data)
            names = dict(sorted((node.now if kept > 0 else node.synced).items()))
            found = {name: left(inner) for name, inner in names.items()}
            return Folder(found, dict(found))

        disk, root = Disk(room=self.room), left(self.root)
        assert isinstance(root, Folder)
        disk.root = root
        return disk

    def _change(self) -> None:
        if self.changes is not None:
            if self.changes == 0:
                raise PowerCut("the power went")
            self.changes -= 1

    def _parent(self, path: str) -> tuple[Folder, str]:
        """The folder that a path's last name is in, and that name."""
        above, _, name = path.rstrip("/").rpartition("/")
        node = self._node(above)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node, name

    def _node(self, path: str) -> File | Folder:
        if not path.strip("/"):
            return self.root
        folder, name = self._parent(path)
        if name not in folder.now:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return folder.now[name]


def _size(node: File | Folder) -> int:
    if isinstance(node, File):
        return len(node.now)
    return sum(map(_size, node.now.values()))
