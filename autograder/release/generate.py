"""From solutions/ to exercises/, with nbgrader's own GenerateAssignment, and what it refuses.

`blank` is a pure function: the same source notebook gives the same bytes, and no gradebook is
touched. `register` enters an assignment's cells and points in the class gradebook.
"""

import contextlib
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests
from traitlets.config import Config

from autograder.database import make_gradebook
from autograder.nbgrader_config import settings
from autograder.places import CourseError, GradebookError, Places, why_not_written
from autograder.release.rules import check
from autograder.written import Written
from byhand.words import counted

_BROKEN = ("readonly database", "unable to open database")
_OTHER_CELLS = "Cannot add or remove cells"
PART = "with check.part("


def release(where: Places, assignments: list[str], overwrite: bool = False) -> list[Path]:
    """Write the exercises of these assignments; return the files. All or none are written.

    Raises:
        CourseError: a source notebook breaks a rule; the message names the file and the cell. Or,
            without `overwrite`, an exercise is not as release left it: somebody works in it.
    """
    sources = [where.source(name) for name in assignments]
    made = {f"{path.parent.name}/{path.name}": blank(path).decode() for path in sources}
    written = Written(where.exercises)
    changed = [name for name, text in made.items() if written.is_changed(name, text)]
    if changed and not overwrite:
        raise CourseError(
            f"in {where.exercises}, not as they were released: {', '.join(changed)}. Nothing was"
            " written. If they hold somebody's work, move them away; or release with --overwrite"
        )
    return [written.write(name, text) for name, text in made.items()]


def blank(source: Path) -> bytes:
    """The released notebook of a source notebook: solutions and hidden tests taken out.

    Raises:
        CourseError: the source breaks a rule; the message names the cells.
    """
    check(source)
    assignment = source.parent.name
    with tempfile.TemporaryDirectory() as folder:
        where = Places(Path(folder) / "course", Path(folder) / "class")
        (where.solutions / assignment).mkdir(parents=True)
        shutil.copy(source, where.solutions / assignment)
        config = settings(where)
        config.GenerateAssignment.no_database = True
        config.SaveCells.enabled = False
        _generate(assignment, config)
        return where.released(assignment).read_bytes()


def register(where: Places, assignment: str) -> None:
    """Enter the assignment in the class gradebook, or bring it up to date there.

    Raises:
        CourseError: cells were added or removed after hand-ins were recorded; how to go on.
    """
    check(where.source(assignment))
    config = settings(where)
    make_gradebook(where)
    with tempfile.TemporaryDirectory() as folder:
        config.CourseDirectory.release_directory = folder
        try:
            _generate(assignment, config)
        except CourseError as why:
            if _OTHER_CELLS not in str(why):
                raise
            raise CourseError(
                f"{assignment}: its graded cells are not those that hand-ins were recorded with."
                f" Undo that; or move {where.gradebook} away, and autograder grade makes it again"
                " with the new ones, without the marks and comments that people gave."
            ) from None


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
    """The error to raise when nbgrader refused: its last words, or a sentence of ours for them."""
    log = "\n".join(said).strip()
    known = why_not_written(log)
    is_broken = known or any(words in log for words in _BROKEN)
    kind = GradebookError if is_broken else CourseError
    return kind("\n  ".join([f"{sentence}:", *([known] if known else log.splitlines()[-6:])]))


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


class HiddenTests(ClearHiddenTests):
    """nbgrader's, and where it took parts of a test out, a line that says so when all passed."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Take the hidden tests out of one cell."""
        parts = cell.source.count(PART)
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        visible = cell.source.count(PART)
        if visible < parts:
            passed, hidden = (
                counted(number, f"{kind} part")
                for number, kind in ((visible, "visible"), (parts - visible, "hidden"))
            )
            cell.source += (
                f'\nprint("{passed} passed; {hidden} will vary ranks, sizes and inputs.")'
            )
        return cell, resources
