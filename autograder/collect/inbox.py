"""What lies in a folder or zip of downloads: a flat list of files, each read only when asked for.

Nothing is unpacked and no link is followed: a file is bytes under a name, and where it goes is
decided elsewhere. A zip inside (students hand those in) is looked into once, never deeper.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from autograder.collect.names import PLAIN, sender_of
from autograder.collect.uploads import MAX_BYTES, read_file, whole_text
from autograder.places import CourseError

MAX_FILES = 50_000
MAX_DEPTH = 8
CLUTTER = {"__MACOSX", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db", "desktop.ini"}
_LINK, _ENCRYPTED = 0o12, 0x1
Reader = Callable[[], tuple[bytes | None, str]]


@dataclass(frozen=True)
class File:
    """One file of an inbox. `path` is where it lies in it; `read` gives bytes, or why not."""

    path: PurePosixPath
    read: Reader
    modified: datetime | None = None


def files(inbox: Path) -> list[File]:
    """The files of a folder or a zip, in the order of their paths.

    Raises:
        CourseError: it is neither, or holds more files than a class can.
    """
    if inbox.is_dir():
        found = list(_in_folder(inbox, PurePosixPath(), MAX_DEPTH))
    elif inbox.is_file() and zipfile.is_zipfile(inbox):
        found = _in_zip(inbox)
    else:
        raise CourseError(f"{inbox} is not a folder and not a zip: give one or the other, with"
                          " the downloaded submissions")  # fmt: skip
    if len(found) > MAX_FILES:
        raise CourseError(f"{inbox} holds more than {MAX_FILES} files")
    found = [file for file in found if not _is_clutter(file.path)]
    return sorted(found, key=lambda file: file.path)


def wrapper(found: list[File]) -> str:
    """The one folder that holds all files, and several folders or downloads of an LMS; else ""."""
    tops = {file.path.parts[0] for file in found}
    inner = {file.path.parts[0] for file in unwrapped(found) if _is_somebodys(file.path)}
    return tops.pop() if len(tops) == 1 and len(inner) > 1 else ""


def unwrapped(found: list[File]) -> list[File]:
    """The files in folders, as seen from inside the first folder of each."""
    return [replace(file, path=PurePosixPath(*file.path.parts[1:]))
            for file in found if len(file.path.parts) > 1]  # fmt: skip


def zipped(data: bytes, path: PurePosixPath) -> list[File]:
    """The files in the bytes of a zip that lay at `path`; none when it cannot be read as one."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except Exception:  # whatever the bytes make Python raise, the class goes on
        return []
    return [file for file in _entries(archive, path) if not _is_clutter(file.path)]


def _is_clutter(path: PurePosixPath) -> bool:
    """What operating systems and editors leave beside the work."""
    return bool(CLUTTER & set(path.parts)) or path.name.startswith("._")


def _is_somebodys(path: PurePosixPath) -> bool:
    """Whether it lies in a folder, or has a name that an LMS gives."""
    sender = sender_of(path)
    return len(path.parts) > 1 or (sender is not None and sender.lms != PLAIN)


def _in_folder(folder: Path, inside: PurePosixPath, depth: int) -> Iterator[File]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = inside / whole_text(entry.name)
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _in_folder(Path(entry.path), path, depth - 1)
            continue
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            yield File(path, _refused("it is a link"))
        else:
            moment = datetime.fromtimestamp(status.st_mtime, UTC)
            yield File(path, lambda place=Path(entry.path): _read_disk(place), moment)


def _read_disk(path: Path) -> tuple[bytes | None, str]:
    data, why_not = read_file(path)
    return data, f"it {why_not}" if why_not else ""


def _in_zip(path: Path) -> list[File]:
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:
        raise CourseError(f"{path} cannot be read as a zip: {error}") from None
    return list(_entries(archive, PurePosixPath()))


def _entries(archive: zipfile.ZipFile, inside: PurePosixPath) -> Iterator[File]:
    for info in archive.infolist():
        path, why_not = PurePosixPath(info.filename.replace("\\", "/")), _why_not(info)
        if info.is_dir() or not path.name:
            continue
        if why_not:
            yield File(inside / path.name, _refused(why_not))
        else:
            yield File(inside / path, lambda info=info: _read_entry(archive, info))


def _why_not(info: zipfile.ZipInfo) -> str:
    """Why an entry of a zip is not even looked at."""
    parts = PurePosixPath(info.filename.replace("\\", "/")).parts
    if info.filename.startswith(("/", "\\")) or ".." in parts or ":" in (parts or ("",))[0]:
        return f"its path in the zip, {info.filename!r}, leads outside"
    if (info.external_attr >> 28) == _LINK:
        return "it is a link"
    if info.flag_bits & _ENCRYPTED:
        return "it is locked with a password"
    if info.file_size > MAX_BYTES:
        return f"it is larger than {MAX_BYTES // 1_000_000} MB"
    return ""


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[bytes | None, str]:
    """At most MAX_BYTES, whatever size the zip states."""
    try:
        with archive.open(info) as stream:
            data = stream.read(MAX_BYTES + 1)
    except Exception:  # each compression raises errors of its own
        return None, "it cannot be read from the zip"
    if len(data) > MAX_BYTES:
        return None, f"it is larger than {MAX_BYTES // 1_000_000} MB"
    return data, ""


def _refused(why_not: str) -> Reader:
    return lambda: (None, why_not)
