"""What lies in a folder or zip of downloads: a flat list of files, each read only when asked for.

Nothing is unpacked and no link is followed: a file is bytes under a name, and where it goes is
decided elsewhere. A zip inside (students hand those in) is looked into once, never deeper.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from autograder.places import CourseError
from autograder.uploads import MAX_BYTES, read_file

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
    return _without_wrapper(sorted(found, key=lambda file: file.path))


def zipped(data: bytes, path: PurePosixPath) -> list[File]:
    """The files in the bytes of a zip that lay at `path`; none when it is no zip."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError):
        return []
    return [file for file in _entries(archive, path) if not _is_clutter(file.path)]


def _is_clutter(path: PurePosixPath) -> bool:
    """What operating systems and editors leave beside the work."""
    return bool(CLUTTER & set(path.parts)) or path.name.startswith("._")


def _without_wrapper(found: list[File]) -> list[File]:
    """The files inside the one folder that holds several folders and everything else."""
    tops = {file.path.parts[0] for file in found}
    inner = {file.path.parts[1] for file in found if len(file.path.parts) > 2}
    if len(tops) != 1 or len(inner) < 2:
        return found
    return [replace(file, path=PurePosixPath(*file.path.parts[1:])) for file in found]


def _in_folder(folder: Path, inside: PurePosixPath, depth: int) -> Iterator[File]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = inside / entry.name
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
    except (zipfile.BadZipFile, OSError) as error:
        raise CourseError(f"{path} cannot be read as a zip: {error}") from None
    return list(_entries(archive, PurePosixPath()))


def _entries(archive: zipfile.ZipFile, inside: PurePosixPath) -> Iterator[File]:
    for info in archive.infolist():
        if info.is_dir():
            continue
        path, why_not = PurePosixPath(info.filename.replace("\\", "/")), _why_not(info)
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
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, ValueError):
        return None, "it cannot be read from the zip"
    if len(data) > MAX_BYTES:
        return None, f"it is larger than {MAX_BYTES // 1_000_000} MB"
    return data, ""


def _refused(why_not: str) -> Reader:
    return lambda: (None, why_not)
