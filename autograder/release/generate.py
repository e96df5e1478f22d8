"""From solutions/ to exercises/, with nbgrader's own GenerateAssignment, and what it refuses.

`blank` is a pure function: the same source notebook gives the same bytes, and no gradebook is
touched. `register` enters an assignment's cells and points in the class gradebook.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.nbgrader_config import COURSE_ID, prepare, settings
from autograder.places import CourseError, Places
from autograder.release.rules import problems
from autograder.scratch import Scratch

_NO_ROOM = ("disk is full", "disk I/O error", "No space left", "quota exceeded", "File too large")
_BROKEN = ("database is locked", "readonly database", "unable to open database", *_NO_ROOM)


class GradebookError(CourseError):
    """The gradebook cannot be written now, whatever was to be written."""


def release(where: Places, assignments: list[str]) -> list[Path]:
    """Write the exercises of these assignments; return the files. All or none are written.

    Raises:
        CourseError: a source notebook breaks a rule; the message names the file and the cell.
    """
    made = {name: blank(where.source(name)) for name in assignments}
    written = []
    for name, data in made.items():
        target = where.released(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data)
        written.append(target)
    return written


def blank(source: Path) -> bytes:
    """The released notebook of a source notebook: solutions and hidden tests taken out.

    Raises:
        CourseError: the source breaks a rule; the message names the cells.
    """
    check(source)
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        where = Places(course, Path(folder) / "class")
        _copy_source(source, where)
        config = settings(where)
        config.GenerateAssignment.no_database = True
        config.SaveCells.enabled = False
        _generate(source.parent.name, config)
        return where.released(source.parent.name).read_bytes()


def register(where: Places, assignment: str) -> None:
    """Enter the assignment in the class gradebook, or bring it up to date there.

    Raises:
        CourseError: cells were added or removed after students had handed in.
    """
    source = where.source(assignment)
    check(source)
    prepare(where)
    new_gradebook(where)
    with Scratch() as folder:
        config = settings(where)
        config.CourseDirectory.release_directory = str(folder)
        _generate(assignment, config)


def new_gradebook(where: Places) -> None:
    """Make the gradebook, unless there is one: whole or not at all.

    nbgrader makes the tables first and notes their version a second later; a gradebook from
    between the two could never be upgraded.
    """
    if where.gradebook.exists():
        return
    unfinished = where.gradebook.with_name("gradebook.db.unfinished")
    for path in (unfinished, unfinished.with_name(unfinished.name + "-journal")):
        path.unlink(missing_ok=True)
    with quiet_nbgrader(), Gradebook(f"sqlite:///{unfinished}", course_id=COURSE_ID):
        pass
    os.replace(unfinished, where.gradebook)


def check(source: Path) -> None:
    """Refuse a source notebook whose ids, points, locks or stated total are wrong."""
    try:
        notebook = nbformat.read(source, as_version=nbformat.NO_CONVERT)
    except (ValueError, OSError) as error:
        raise CourseError(f"{source} cannot be read as a notebook: {error}") from None
    found = problems(notebook)
    if found:
        raise CourseError("\n".join([f"{source} cannot be released:", *(f"  {p}" for p in found)]))


def _copy_source(source: Path, where: Places) -> None:
    target = where.solutions / source.parent.name
    target.mkdir(parents=True)
    shutil.copy(source, target / source.name)


def _generate(assignment: str, config: Config) -> None:
    """Run nbgrader's GenerateAssignment for one assignment."""
    config.CourseDirectory.assignment_id = assignment
    config.GenerateAssignment.force = True
    with quiet_nbgrader() as said:
        converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        try:
            converter.start()
        except NbGraderException:
            raise refusal(f"nbgrader cannot release {assignment}", said) from None


@contextlib.contextmanager
def quiet_nbgrader() -> Iterator[list[str]]:
    """Collect what nbgrader and alembic log instead of printing it."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("traitlets")
    kept = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SQLAlchemy's, about nbgrader's own code
            yield said
    finally:
        logger.handlers, logger.propagate = kept[:2]
        logger.setLevel(kept[2])


def refusal(sentence: str, said: list[str]) -> CourseError:
    """The error to raise when nbgrader refused, with its last words."""
    broken = any(words in text for text in said for words in _BROKEN)
    return (GradebookError if broken else CourseError)(f"{sentence}:\n{last_words(said)}")


def last_words(said: list[str]) -> str:
    """The last lines of what nbgrader logged, indented; a sentence where the cause is plain."""
    if any("database is locked" in text for text in said):
        return "  another program is using the gradebook: try again when it is done"
    if any(words in text for text in said for words in _NO_ROOM):
        return "  there is no room on the disk: make some, and grade again"
    lines = "\n".join(said).strip().splitlines()
    return "\n".join(f"  {line}" for line in lines[-6:])


def _replace(target: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_bytes(data)
    os.replace(temporary, target)
