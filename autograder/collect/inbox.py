"""What lies in a folder or zip of downloads: a flat list of files, each read only when asked for.

Nothing is unpacked and no link is followed: a file is bytes under a name, and where it goes is
decided elsewhere.
"""

import os
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from autograder.collect.uploads import File, printable, regular
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


def in_folder(folder: Path, deepest: int = MAX_DEPTH) -> Iterator[File]:
    """The files of a folder, and of the folders in it; links, too, which nobody can read."""
    for at, folders, names in os.walk(folder):
        inside = Path(at).relative_to(folder)
        if len(inside.parts) == deepest:
            folders.clear()
        for name in names:
            place, path = Path(at, name), PurePosixPath(printable(str(inside / name)))
            if not _is_clutter(path):
                yield File(path, partial(regular, place), place.lstat().st_mtime)


def _in_zip(inbox: Path) -> Iterator[File]:
    archive = zipfile.ZipFile(inbox)
    for info in archive.infolist():
        path = PurePosixPath(printable(info.filename.replace("\\", "/")))
        path = PurePosixPath(*(part for part in path.parts if part not in ("/", "..")))
        if path.name and not info.is_dir() and not _is_clutter(path):
            yield File(path, partial(archive.open, info), _when_changed(info))


def _when_changed(info: zipfile.ZipInfo) -> float:
    """The second in which the file was changed, as its zip says; 0 where that is no date."""
    with suppress(ValueError, OverflowError):
        return datetime(*info.date_time).timestamp()
    return 0


def _is_clutter(path: PurePosixPath) -> bool:
    """Whether it is what operating systems and editors leave beside the work."""
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)
