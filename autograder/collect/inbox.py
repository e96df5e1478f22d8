"""What lies in a folder or zip of downloads: a flat list of files, each read only when asked for.

Nothing is unpacked and no link is followed: a file is bytes under a name, and where it goes is
decided elsewhere. A zip inside (students hand those in) is looked into once, never deeper.
"""

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

from autograder.collect.names import PLAIN, sender_of
from autograder.collect.uploads import (
    SUFFIXES,
    Choice,
    File,
    Read,
    capped,
    choose,
    likely_first,
    printable,
    read_file,
)
from autograder.places import CourseError

MAX_FILES = 50_000
MAX_DEPTH = 8
MAX_NOTES = 10
CLUTTER = {"__MACOSX", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db", "desktop.ini"}
_LINK = 0o12


def files(inbox: Path) -> list[File]:
    """The files of a folder or a zip, in the order of their paths.

    Raises:
        CourseError: it is neither, or holds more files than a class can.
    """
    try:
        found = list(_in_folder(inbox) if inbox.is_dir() else _in_zip(zipfile.ZipFile(inbox)))
    except Exception as error:  # whatever the bytes make Python raise
        raise CourseError(
            f"{inbox} is not a folder and cannot be read as a zip: {error}. Give one or the other,"
            " with the downloaded submissions"
        ) from None
    if len(found) > MAX_FILES:
        raise CourseError(f"{inbox} holds more than {MAX_FILES} files")
    return sorted(found, key=lambda file: file.path)


def take(folder: Path, stem: str, known: set[str]) -> tuple[Choice, list[str]]:
    """The notebook in one submission's folder, whatever it is called, and notes on the choice."""
    found = sorted(_in_folder(folder, deepest=0), key=lambda file: file.path)
    files = [file for file in found if file.path.suffix.lower() in SUFFIXES]
    files = [file for file in files if file.path.name != "timestamp.txt"]
    chosen = choose(likely_first(files, stem), stem, known)
    notes = [f"The file {file.path} {why}. It was left out." for file, why in chosen.problems]
    if len(notes) > MAX_NOTES:
        notes[MAX_NOTES:] = [f"{len(notes) - MAX_NOTES} more files were left out."]
    if chosen.cells and str(chosen.file.path) != f"{stem}.ipynb":
        name = f"The notebook was found under the name {chosen.file.path}"
        notes.append(f"{name}; it should be {stem}.ipynb.")
    return chosen, notes


def wrapper(found: list[File]) -> str:
    """The one folder that holds all files, and several folders or downloads of an LMS; else ""."""
    tops = {file.path.parts[0] for file in found}
    paths = [file.path for file in unwrapped(found)]
    people = {path.parts[0] for path in paths if len(path.parts) > 1 or _is_download(path)}
    return tops.pop() if len(tops) == 1 and len(people) > 1 else ""


def unwrapped(found: list[File]) -> list[File]:
    """The files in folders, as seen from inside the first folder of each."""
    inside = [file for file in found if len(file.path.parts) > 1]
    return [replace(file, path=PurePosixPath(*file.path.parts[1:])) for file in inside]


def opened(file: File) -> list[File]:
    """The file, or the notebooks in it where it is a zip that a student handed in."""
    if file.path.suffix.lower() != ".zip":
        return [file]
    data, why_not = file.read()
    why_not = why_not or "is a zip from which no notebook can be read"
    try:
        found = list(_in_zip(zipfile.ZipFile(io.BytesIO(data or b""))))
    except Exception:  # whatever the bytes make Python raise, the class goes on
        found = []
    inside = [
        replace(file, path=file.path / inner.path, read=inner.read, size=inner.size)
        for inner in found
        if inner.path.suffix.lower() in SUFFIXES
    ]
    return inside or [replace(file, read=lambda: (None, why_not))]


def _is_work(path: PurePosixPath) -> bool:
    """Whether it is not what operating systems and editors leave beside the work."""
    return not CLUTTER & set(path.parts) and not path.name.startswith("._")


def _is_download(path: PurePosixPath) -> bool:
    sender = sender_of(path)
    return sender is not None and sender.lms != PLAIN


def _in_folder(inbox: Path, deepest: int = MAX_DEPTH) -> Iterator[File]:
    for folder, folders, names in os.walk(inbox):
        inside = Path(folder).relative_to(inbox)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        if len(inside.parts) == deepest:
            folders.clear()
        for name in names + links:
            place, path = Path(folder, name), PurePosixPath(printable(str(inside / name)))
            if _is_work(path):
                about = place.lstat()
                modified = datetime.fromtimestamp(about.st_mtime, UTC)
                yield File(path, partial(read_file, place), modified, size=about.st_size)


def _in_zip(archive: zipfile.ZipFile) -> Iterator[File]:
    for info in archive.infolist():
        path = PurePosixPath(printable(info.filename.replace("\\", "/")))
        if path.name and not info.is_dir() and _is_work(path):
            is_outside = path.is_absolute() or ".." in path.parts or ":" in path.parts[0]
            place = PurePosixPath(path.name) if is_outside else path
            read = partial(_read_entry, archive, info, is_outside)
            yield File(place, read, size=info.file_size)


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, is_outside: bool) -> Read:
    if is_outside:
        return None, f"has a path that leads outside the zip, {info.filename!r}"
    if (info.external_attr >> 28) == _LINK:
        return None, "is a link"
    try:
        with archive.open(info) as stream:
            return capped(stream)
    except Exception as error:  # each compression raises errors of its own
        return None, f"cannot be read from the zip ({type(error).__name__})"
