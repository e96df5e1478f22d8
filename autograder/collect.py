"""From an inbox of downloaded files to submitted/STUDENT/ASSIGNMENT/STEM.ipynb.

The inbox holds a folder for each student, or files called STUDENT_anything.ipynb. Nothing is
followed or unpacked; a file is copied as bytes, and what it is shows when it is graded.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from pathlib import Path

from autograder.pages import write_page
from autograder.places import CourseError, Places
from autograder.uploads import read_file, take

_STUDENT = re.compile(r"[^\s/_][^/_]*")


@dataclass
class Collected:
    """Students whose work was copied, and a sentence for each thing that could not be placed."""

    students: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def collect(where: Places, assignment: str, inbox: Path) -> Collected:
    """Copy an inbox into submitted/; a student's earlier hand-in is replaced.

    Raises:
        CourseError: the inbox is no folder.
    """
    if not inbox.is_dir():
        raise CourseError(f"{inbox} is not a folder; give the one with the downloaded submissions")
    stem, done = where.source(assignment).stem, Collected()
    for path in sorted(inbox.iterdir()):
        student = path.name if path.is_dir() else path.stem.partition("_")[0]
        why_not = "it is a link" if path.is_symlink() else _why_not(path, student)
        if not why_not:
            data = take(path, stem, set())[0] if path.is_dir() else read_file(path)[0]
            why_not = "" if data is not None else "no notebook in it can be read"
        if why_not:
            done.left.append(f"{path.name}: {why_not}")
            continue
        _place(where.submitted / student / assignment, stem, data, path)
        done.students.append(student)
    return done


def _why_not(path: Path, student: str) -> str:
    if not _STUDENT.fullmatch(student) or student in (".", ".."):
        return "no student's name can be made of its name"
    if not path.is_dir() and path.suffix != ".ipynb":
        return "it is neither a folder nor a notebook"
    return ""


def _place(folder: Path, stem: str, data: bytes, path: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.ipynb"):
        old.unlink()
    (folder / f"{stem}.ipynb").write_bytes(data)
    moment = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    write_page(folder / "timestamp.txt", f"{moment:%Y-%m-%d %H:%M:%S} UTC\n")
