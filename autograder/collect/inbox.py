"""What lies in a folder or zip of downloads: a flat list of files, each read only when asked for.

Nothing is unpacked and no link is followed: a file is bytes under a name, and where it goes is
decided elsewhere. A zip inside (students hand those in) is looked into once, never deeper.
"""

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from autograder.collect.uploads import File, Read, capped, printable, read_file
from autograder.places import CourseError

MAX_DEPTH = 8


def files(inbox: Path) -> list[File]:
    """The files of a folder or a zip, by path.

    Raises:
        CourseError: it is neither.
    """
    try:
        found = in_folder(inbox) if inbox.is_dir() else _in_zip(inbox)
        return sorted(found, key=lambda file: file.path)
    except Exception as error:  # whatever the bytes make Python raise
        raise CourseError(
            f"{inbox} is not a folder and cannot be read as a zip: {error}. Give one or the other,"
            " with the downloaded submissions"
        ) from None


def unzipped(files: list[File]) -> list[File]:
    """What is in the newest zip among a student's files; the files themselves without one."""
    zips = [file for file in files if file.path.suffix.lower() == ".zip"]
    try:
        newest = max(zips, key=lambda file: file.newness)
        inside = list(_in_zip(io.BytesIO(newest.read()[0])))
    except Exception:  # whatever the bytes make Python raise, the class goes on
        return files
    return [replace(newest, path=newest.path / one.path, read=one.read) for one in inside]


def in_folder(folder: Path, deepest: int = MAX_DEPTH) -> Iterator[File]:
    """The files of a folder, and of the folders in it; links, too, which nobody can read."""
    for at, folders, names in os.walk(folder):
        inside = Path(at).relative_to(folder)
        if len(inside.parts) == deepest:
            folders.clear()
        for name in names:
            place, path = Path(at, name), PurePosixPath(printable(str(inside / name)))
            if not _is_clutter(path):
                yield File(path, partial(read_file, place), place.lstat().st_mtime)


def _in_zip(packed: Path | BinaryIO) -> Iterator[File]:
    archive = zipfile.ZipFile(packed)
    for info in archive.infolist():
        path = PurePosixPath(printable(info.filename.replace("\\", "/")))
        path = PurePosixPath(*(part for part in path.parts if part not in ("/", "..")))
        if path.name and not info.is_dir() and not _is_clutter(path):
            yield File(path, partial(_read_entry, archive, info))


def _is_clutter(path: PurePosixPath) -> bool:
    """Whether it is what operating systems and editors leave beside the work."""
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Read:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return None, "is packed in a way that cannot be read in steps"  # and may be a bomb
    try:
        with archive.open(info) as stream:
            return capped(stream)
    except Exception as error:  # whatever the bytes make Python raise
        return None, f"cannot be read from the zip ({type(error).__name__})"
